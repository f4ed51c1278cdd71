"""Imports: the `import` statements of a Corefile, and the files that they include.

The law: a pattern is relative to its file, as in CoreDNS (github.com/coredns/caddy, caddyfile/parse.go doImport). Each
file is read once, and a circle of imports is a fault. The text alone decides whether a file of ours would get queries
at a hook: CoreDNS tries the forwards of a block in the order of the file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from dnsproxy.cluster_dns.found import Hook, ImportedFile
from dnsproxy.cluster_dns.pod_files import PodFile, PodFiles
from dnsproxy.cluster_dns.requests import Blame, Fault
from dnsproxy.corefile.forward_directive import try_forward
from dnsproxy.corefile.markers import is_marked
from dnsproxy.corefile.model import Corefile, CorefileError, Directive, Import, Scope, ServerBlock
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block
from dnsproxy.corefile.zones import ROOT, has_environment
from sidecar.values.text import cut

_LONGEST: Final = 320
"""Characters of an import and of what is wrong with it; a Corefile may have a megabyte."""


@dataclass(frozen=True, slots=True)
class Imports:
    """The hooks and imported files of a Corefile."""

    hooks: tuple[Hook, ...]
    files: tuple[ImportedFile, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """One import, and the scope of its files."""

    found: Import
    scope: Scope
    takes_forward: bool


def find_imports(files: PodFiles, path: str, corefile: Corefile) -> Imports:
    """The hooks and imported files of a Corefile at a path of the container."""
    walk = _Walk(files)
    walk.follow(corefile, path, _Statement(Import("", 0, 0), Scope.BLOCKS, takes_forward=True), (path,))
    return Imports(tuple(walk.hooks), tuple(walk.found.values()))


class _Walk:
    def __init__(self, files: PodFiles) -> None:
        self.files = files
        self.hooks: list[Hook] = []
        self.found: dict[str, ImportedFile] = {}
        self.snippets: set[str] = set()
        """Names of snippets, which are not files: a snippet is known in every file that is read after it."""

    def follow(self, corefile: Corefile, path: str, by: _Statement, stack: tuple[str, ...]) -> None:
        """Follow the imports of a file, which a statement included; `stack` is the chain of files down to it."""
        self.snippets |= {snippet.name for snippet in corefile.snippets}
        pending: list[tuple[PodFile, _Statement]] = []
        for statement in _statements(corefile, by):
            if statement.found.pattern in self.snippets:
                continue
            pattern = posixpath.normpath(posixpath.join(posixpath.dirname(path), statement.found.pattern))
            matched = [] if has_environment(pattern) else self.files.match(pattern)
            self.hooks.append(self.make_hook(statement, pattern, matched))
            pending += [(file, statement) for file in matched]
        for file, statement in pending:
            self.enter(file, statement, stack)

    def enter(self, file: PodFile, by: _Statement, stack: tuple[str, ...]) -> None:
        if file.path in stack:
            self.report(f"circular imports: {' imports '.join([*stack[stack.index(file.path) :], file.path])}")
            return
        if file.path in self.found:
            return
        self.found[file.path] = _imported(file, by.scope)
        try:
            corefile = parse_corefile(file.text, by.scope)
        except CorefileError as error:
            self.report(f"{file.key} in ConfigMap {file.source}, line {error.line}: {error}")
            return
        self.follow(corefile, file.path, by, (*stack, file.path))

    def make_hook(self, statement: _Statement, pattern: str, matched: list[PodFile]) -> Hook:
        found = statement.found
        source, trouble = self.files.place_for(pattern)
        shown, trouble = cut(found.pattern, _LONGEST), cut(trouble, _LONGEST)
        hook = Hook(shown, found.line, statement.scope, pattern, statement.takes_forward, source, trouble)
        if has_environment(pattern):
            return replace(hook, source=None, trouble="an environment variable is part of its path")
        if statement.scope is Scope.OTHER:
            return replace(hook, trouble="it is in the server block of another zone")
        taking = [file.key for file in matched if _takes_all(file, statement.scope)]
        if taking:
            return replace(hook, trouble=f"{taking[0]} has a forward for . already")
        return hook

    def report(self, text: str) -> None:
        self.files.requests.report(Fault(Blame.CONTENTS, text))


def _imported(file: PodFile, scope: Scope) -> ImportedFile:
    return ImportedFile(file.path, file.source, file.key, file.text, scope)


def _statements(corefile: Corefile, by: _Statement) -> Iterator[_Statement]:
    """The imports in the order of the file. A file that comes too late makes its own imports come too late."""
    root = _root_block(corefile)
    found = [_Statement(one, by.scope, by.takes_forward) for one in corefile.imports]
    for block in corefile.blocks:
        inner = Scope.ROOT_PLUGINS if block is root and by.scope is not Scope.OTHER else Scope.OTHER
        found += [_Statement(one, inner, by.takes_forward and _is_open(block, one.index)) for one in block.imports]
    yield from sorted(found, key=lambda statement: statement.found.index)


def _root_block(corefile: Corefile) -> ServerBlock | None:
    try:
        return find_root_block(corefile)
    except CorefileError:
        return None


def _is_open(block: ServerBlock, index: int) -> bool:
    """Whether no forward before that word of the block takes every query, or may take it."""
    return not any(directive.index < index and _may_take_all(directive) for directive in block.named("forward"))


def _may_take_all(directive: Directive) -> bool:
    forward = try_forward(directive)
    return forward is None or forward.zone is None or forward.serves(ROOT)


def _takes_all(file: PodFile, scope: Scope) -> bool:
    """Whether a file of plugins that is not ours has a forward for every query, so that ours would be a second one."""
    if scope is not Scope.ROOT_PLUGINS or is_marked(file.text):
        return False
    value = _imported(file, scope).value
    return value is not None and not all(_is_open(block, len(value.tokens)) for block in value.blocks)
