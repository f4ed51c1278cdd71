"""The lines of a hosts file for the names of a publication.

The law: a line is an address and one name, because some readers stop at a number of names or octets (musl: 511), and
its order depends on the names alone. A name that the file has already is the node's own business: its API server, say,
whose name any tenant could claim. What is left out is counted and told. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import Reach, is_within_any


@dataclass(frozen=True, slots=True)
class HostsLines:
    """What a publication comes to."""

    lines: tuple[str, ...]
    wildcards: tuple[str, ...] = ()
    """Hostnames that a hosts file cannot express (hosts(5) knows no patterns)."""
    taken: tuple[str, ...] = ()
    """Hostnames that lines of others have."""

    @property
    def names(self) -> int:
        """How many names they have."""
        return len({_name_in(line) for line in self.lines})


def make_lines(names: Iterable[Name], *, zones: Sequence[str] = ()) -> HostsLines:
    """The lines of the names, in their order, at or below one of the zones, or of all where none is given."""
    chosen = select_names(names, zones=zones)
    plain = [name for name in chosen if name.reach is Reach.NAME]
    lines = tuple(f"{address} {name.hostname}" for name in plain for address in name.addresses)
    return HostsLines(lines, tuple(dict.fromkeys(name.hostname for name in chosen if name.reach is not Reach.NAME)))


def without_taken(made: HostsLines, foreign: bytes) -> HostsLines:
    """The lines whose names are not in a text of others."""
    theirs = _names_in(foreign)
    taken = dict.fromkeys(_name_in(line) for line in made.lines if _name_in(line) in theirs)
    lines = tuple(line for line in made.lines if _name_in(line) not in taken)
    return HostsLines(lines, made.wildcards, tuple(taken))


def select_names(names: Iterable[Name], *, zones: Sequence[str]) -> list[Name]:
    """The names at or below one of the zones; all where none is given."""
    return [name for name in names if not zones or is_within_any(name.hostname.removeprefix("*."), zones)]


def count_names(lines: Iterable[bytes]) -> int:
    """How many names lines of ours hold."""
    return len({line.split()[1] for line in lines if len(line.split()) > 1})


def _names_in(text: bytes) -> frozenset[str]:
    """The names of a hosts file, in the case of ours."""
    rows = (line.partition(b"#")[0].split()[1:] for line in text.splitlines())
    return frozenset(word.decode("ascii", "replace").lower().removesuffix(".") for row in rows for word in row)


def _name_in(line: str) -> str:
    return line.partition(" ")[2]
