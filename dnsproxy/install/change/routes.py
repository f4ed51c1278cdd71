"""Routes: which server block, and which forward in it, serves a zone today, imported files included.

The law: blocks and forwards are read as CoreDNS reads them: the longest key wins, and in a block the forwards are asked
in the order in which imports bring them in. What is ours is left out, so that planning again sees the same. Pure.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from dnsproxy.cluster_dns.choice import ConfigMapKey
from dnsproxy.cluster_dns.found import FoundCorefile, ImportedFile
from dnsproxy.corefile.forward import Forward, parse_forward
from dnsproxy.corefile.markers import is_marked, without_region
from dnsproxy.corefile.model import Corefile, CorefileError, Directive, Import, Key, Scope, ServerBlock
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block, root_port
from dnsproxy.corefile.zones import DNS_SCHEME, is_at_or_below
from dnsproxy.install.change.once import check_once
from dnsproxy.install.change.refusal import Refusal, refusal_of

_DEEPEST = 16


@dataclass(frozen=True, slots=True)
class Step:
    """A directive of the block of `.`, in its turn."""

    directive: Directive
    place: str
    """Where it stands, for people: object, key and line."""
    index: int
    """Of the word of the main Corefile that brings it: its own, or that of the import."""
    imported: bool


@dataclass(frozen=True, slots=True)
class Route:
    """A forward of the block of `.`, in its turn."""

    forward: Forward
    step: Step

    def __str__(self) -> str:
        return f"`forward {self.forward.zone_text}` ({self.step.place})"


@dataclass(frozen=True, slots=True)
class ServedKey:
    """A key of a server block on the port of the block of `.`."""

    key: Key
    place: str
    is_root_block: bool = False
    imported: bool = False
    """Whether another file than the main Corefile has it."""

    @property
    def zone(self) -> str:
        """In normal form."""
        return self.key.origin.zone or ""


@dataclass(frozen=True, slots=True)
class Routes:
    """How a workload's CoreDNS treats zones, without anything of ours."""

    value: Corefile
    """The main Corefile."""
    root: ServerBlock
    steps: tuple[Step, ...]
    keys: tuple[ServedKey, ...]
    turn: int
    """How many of the steps come before our own file; all of them where it has no place among them."""

    def forwards(self) -> list[Route]:
        """The forwards of the block of `.` in their turn."""
        return list(_forwards(self.steps))

    def before_ours(self) -> list[Route]:
        """Those that are asked before a forward in our own file."""
        return list(_forwards(self.steps[: self.turn]))

    def behind_ours(self) -> list[Route]:
        """Those that would be asked after it."""
        return list(_forwards(self.steps[self.turn :]))

    def named(self, *names: str) -> list[Step]:
        """The steps of some plugins."""
        return [step for step in self.steps if step.directive.name in names]


def find_routes(corefile: FoundCorefile, ours: ConfigMapKey | None = None, path: str = "") -> Routes:
    """The routes of a Corefile. `ours` is the key of our own file and `path` where the container sees it.

    Raises Refusal for what CoreDNS would not load, or we cannot read.
    """
    where = f"{corefile.key} in ConfigMap {corefile.source}"
    try:
        value = without_region(parse_corefile(corefile.text))
        root = find_root_block(value)
    except CorefileError as error:
        raise refusal_of(error, where) from None
    walk = _Walk(corefile, ours, path)
    steps = tuple(walk.steps(root, corefile.path, where))
    check_once((step.directive, step.place) for step in steps)
    keys = [ServedKey(key, _place(where, key.token.line), block is root) for block, key in _keys(value, root)]
    for file in corefile.files:
        if file.scope is Scope.BLOCKS and not _is_ours(file):
            fragment = _parse(file)
            keys += [
                ServedKey(key, _place(_name(file), key.token.line), imported=True) for _, key in _keys(fragment, root)
            ]
    turn = len(steps) if walk.turn is None else walk.turn
    return Routes(value, root, steps, tuple(keys), turn)


class _Walk:
    """The directives of a block with its imports put in."""

    def __init__(self, corefile: FoundCorefile, ours: ConfigMapKey | None, path: str) -> None:
        self.files = corefile.files
        self.path = path if ours else ""
        self.count = 0
        self.turn: int | None = None

    def steps(
        self, block: ServerBlock, path: str, where: str, *, index: int | None = None, depth: int = 0
    ) -> Iterator[Step]:
        entries: list[Directive | Import] = sorted([*block.directives, *block.imports], key=lambda one: one.index)
        for entry in entries:
            at = entry.index if index is None else index
            if isinstance(entry, Directive):
                self.count += 1
                yield Step(entry, _place(where, entry.line), at, imported=index is not None)
            elif depth < _DEEPEST:
                yield from self.imported(posixpath.join(posixpath.dirname(path), entry.pattern), at, depth)

    def imported(self, pattern: str, index: int, depth: int) -> Iterator[Step]:
        pattern = posixpath.normpath(pattern)
        matched = {file.path: file for file in self.files if file.scope is Scope.ROOT_PLUGINS}
        for path in sorted({*matched, self.path} - {""}):
            if not _matches(path, pattern):
                continue
            if path == self.path:
                self.turn = self.count if self.turn is None else self.turn
            elif not _is_ours(matched[path]):
                for block in _parse(matched[path]).blocks[:1]:
                    yield from self.steps(block, path, _name(matched[path]), index=index, depth=depth + 1)


def _forwards(steps: tuple[Step, ...]) -> Iterator[Route]:
    for step in steps:
        if step.directive.name == "forward":
            try:
                yield Route(parse_forward(step.directive), step)
            except CorefileError as error:
                raise Refusal(error.reason, error.remedy, place=step.place) from None


def _keys(value: Corefile, root: ServerBlock) -> Iterator[tuple[ServerBlock, Key]]:
    port = root_port(root)
    for block in value.blocks:
        for key in block.keys:
            if (key.origin.scheme, key.origin.port) == (DNS_SCHEME, port) and key.origin.zone:
                yield block, key


def _parse(file: ImportedFile) -> Corefile:
    try:
        value = parse_corefile(file.text, file.scope)
    except CorefileError as error:
        raise refusal_of(error, _name(file)) from None
    # A brace too few takes the lines behind the import with it, and one too many ends the block there. CoreDNS reads
    # either on in some way; what would then become of a stanza nobody should have to guess.
    if file.scope is Scope.ROOT_PLUGINS and [block.closing for block in value.blocks] != [len(value.tokens) - 1]:
        raise Refusal("its braces do not match", "have it hold whole plugins", place=_name(file))
    return value


def _is_ours(file: ImportedFile) -> bool:
    return is_marked(file.text)


def _matches(path: str, pattern: str) -> bool:
    same_folder = posixpath.dirname(path) == posixpath.dirname(pattern)
    return same_folder and fnmatch.fnmatchcase(posixpath.basename(path), posixpath.basename(pattern))


def _name(file: ImportedFile) -> str:
    return f"{file.key} in ConfigMap {file.source}"


def _place(where: str, line: int) -> str:
    return f"{where}, line {line}"


def is_strictly_below(zone: str, parent: str) -> bool:
    """Whether a zone lies inside another one and is not it."""
    return zone != parent and is_at_or_below(zone, parent)
