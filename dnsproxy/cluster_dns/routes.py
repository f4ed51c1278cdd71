"""Routes: which server block, and which forward in it, serves a zone today, imported files included.

The law: blocks and forwards are read as CoreDNS reads them: the longest key wins; in a block, CoreDNS asks the forwards
in the order of their lines, with imported lines at the place of the import. The stanza itself is excluded, so that
planning again gives the same routes. What CoreDNS would not load is refused. Pure.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.cluster_dns.found import FoundCorefile, ImportedFile
from dnsproxy.cluster_dns.method_choice import ConfigMapKey
from dnsproxy.cluster_dns.refusal import ChangeRefused, refusal_of
from dnsproxy.corefile.forward_directive import Forward, parse_forward
from dnsproxy.corefile.markers import find_region, is_marked, without_region
from dnsproxy.corefile.model import (
    Corefile,
    CorefileError,
    Directive,
    Key,
    Scope,
    ServerBlock,
    format_corefile,
)
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block, root_port
from dnsproxy.corefile.zones import DNS_SCHEME, is_at_or_below

_DEEPEST: Final = 16
ONCE: Final = frozenset(["cache", "errors", "hosts", "loop", "nsid", "pprof", "prometheus", "ready", "view"])
"""Plugins that CoreDNS accepts once in a server block, found by asking CoreDNS 1.14.7 about each plugin."""


@dataclass(frozen=True, slots=True)
class PlacedDirective:
    """A directive of the block of `.`, in the order in which CoreDNS reads them."""

    directive: Directive
    place: str
    """Object, key and line, for messages."""
    index: int
    """The index of its word in the main Corefile, or of the word that imports it."""
    imported: bool


@dataclass(frozen=True, slots=True)
class Route:
    """A forward of the block of `.`."""

    forward: Forward
    placed: PlacedDirective

    def __str__(self) -> str:
        return f"`forward {self.forward.zone_text}` ({self.placed.place})"


@dataclass(frozen=True, slots=True)
class ServedKey:
    """A key of a server block on the port of the block of `.`."""

    key: Key
    place: str
    is_root_block: bool = False
    imported: bool = False
    """Whether it stands in an imported file."""

    @property
    def zone(self) -> str:
        """The zone in normal form."""
        return self.key.origin.zone or ""


@dataclass(frozen=True, slots=True)
class Routes:
    """How a workload's CoreDNS treats zones without the stanza."""

    value: Corefile
    """The main Corefile."""
    root: ServerBlock
    directives: tuple[PlacedDirective, ...]
    keys: tuple[ServedKey, ...]
    turn: int
    """The number of directives before our own file; all of them if no import reads it."""

    def forwards(self) -> list[Route]:
        """The forwards of the block of `.`, in order."""
        return list(_forwards(self.directives))

    def before_ours(self) -> list[Route]:
        """The forwards that CoreDNS asks before one in our own file."""
        return list(_forwards(self.directives[: self.turn]))

    def behind_ours(self) -> list[Route]:
        """The forwards that CoreDNS asks after it."""
        return list(_forwards(self.directives[self.turn :]))

    def named(self, *names: str) -> list[PlacedDirective]:
        """The directives of these plugins."""
        return [placed for placed in self.directives if placed.directive.name in names]


def find_routes(corefile: FoundCorefile, ours: ConfigMapKey | None = None, path: str = "") -> Routes:
    """The routes of a Corefile. `ours` is the key of our own file, `path` its path in the container.

    Raises ChangeRefused for a text that CoreDNS would not load, or that we cannot read.
    """
    where = f"{corefile.key} in ConfigMap {corefile.source}"
    try:
        whole = parse_corefile(corefile.text)
        value = without_region(whole)
        root = find_root_block(value)
    except CorefileError as error:
        raise refusal_of(error, where) from None
    line_of = _lines_with_stanza(whole, value)
    walk = _Walk(corefile, ours, path, line_of)
    directives = tuple(walk.directives(root, corefile.path, where))
    _check_once(directives)
    keys = [ServedKey(key, _place(where, line_of(key.token.line)), block is root) for block, key in _keys(value, root)]
    for file in corefile.files:
        if file.scope is Scope.BLOCKS and not _is_ours(file):
            fragment = _parse(file)
            keys += [
                ServedKey(key, _place(_name(file), key.token.line), imported=True) for _, key in _keys(fragment, root)
            ]
    turn = len(directives) if walk.turn is None else walk.turn
    return Routes(value, root, directives, tuple(keys), turn)


def _check_once(directives: Iterable[PlacedDirective]) -> None:
    """Raises ChangeRefused for the second occurrence of a plugin.

    CoreDNS does not load such a block: running pods keep what they loaded before, and new ones fail to start.
    """
    first: dict[str, str] = {}
    for placed in directives:
        name = placed.directive.name
        if name in ONCE and name in first:
            reason = f"{name} is in this server block already ({first[name]}), and CoreDNS loads no block with two"
            remedy = "remove one of them: a CoreDNS that starts now would fail"
            raise ChangeRefused(reason, remedy, place=placed.place)
        first[name] = placed.place


class _Walk:
    """The directives of a block, with those of its imports at their places."""

    def __init__(
        self, corefile: FoundCorefile, ours: ConfigMapKey | None, path: str, line_of: Callable[[int], int]
    ) -> None:
        self.files = corefile.files
        self.line_of = line_of
        self.path = path if ours else ""
        self.count = 0
        self.turn: int | None = None

    def directives(
        self, block: ServerBlock, path: str, where: str, *, index: int | None = None, depth: int = 0
    ) -> Iterator[PlacedDirective]:
        for entry in block.entries:
            at = entry.index if index is None else index
            if isinstance(entry, Directive):
                self.count += 1
                line = self.line_of(entry.line) if index is None else entry.line
                yield PlacedDirective(entry, _place(where, line), at, imported=index is not None)
            elif depth < _DEEPEST:
                yield from self.imported(posixpath.join(posixpath.dirname(path), entry.pattern), at, depth)

    def imported(self, pattern: str, index: int, depth: int) -> Iterator[PlacedDirective]:
        pattern = posixpath.normpath(pattern)
        matched = {file.path: file for file in self.files if file.scope is Scope.ROOT_PLUGINS}
        for path in sorted({*matched, self.path} - {""}):
            if not _matches(path, pattern):
                continue
            if path == self.path:
                self.turn = self.count if self.turn is None else self.turn
            elif not _is_ours(matched[path]):
                for block in _parse(matched[path]).blocks[:1]:
                    yield from self.directives(block, path, _name(matched[path]), index=index, depth=depth + 1)


def _lines_with_stanza(whole: Corefile, bare: Corefile) -> Callable[[int], int]:
    """From a line of the Corefile without the stanza to the same line of the file as it is."""
    region = find_region(whole)
    count = format_corefile(whole).count("\n") - format_corefile(bare).count("\n")
    return lambda line: line + count if region is not None and line >= region.line else line


def _forwards(directives: tuple[PlacedDirective, ...]) -> Iterator[Route]:
    for placed in directives:
        if placed.directive.name == "forward":
            try:
                yield Route(parse_forward(placed.directive), placed)
            except CorefileError as error:
                raise ChangeRefused(error.reason, error.remedy, place=placed.place) from None


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
    # If a closing brace is missing, the block swallows the lines after the import; with one too many it ends there.
    # CoreDNS accepts both in some way, but the effect on a stanza is not predictable.
    if file.scope is Scope.ROOT_PLUGINS and [block.closing for block in value.blocks] != [len(value.tokens) - 1]:
        raise ChangeRefused("its braces do not match", "make it hold whole plugins", place=_name(file))
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
    """Whether a zone lies inside another and differs from it."""
    return zone != parent and is_at_or_below(zone, parent)
