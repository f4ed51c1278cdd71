"""The lines of a hosts file for the names of a publication.

The law: a line is an address and one name, because some readers limit the names or octets of a line (musl: 511 octets),
and the order depends on the names alone. A name that the file has already is excluded: the node's own entries, such as
that of its API server, win over names that any tenant could claim. Excluded names are counted and logged. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import Reach
from dnsproxy.publish.selection import select_names


@dataclass(frozen=True, slots=True)
class HostsLines:
    """The lines for a publication, and the hostnames without a line."""

    lines: tuple[str, ...]
    wildcards: tuple[str, ...] = ()
    """Wildcards: a hosts file has no patterns (hosts(5))."""
    taken: tuple[str, ...] = ()
    """Hostnames that have a line outside our block."""

    @property
    def names(self) -> int:
        """How many names the lines have."""
        return len({_name_in(line) for line in self.lines})


def make_lines(names: Iterable[Name], *, zones: Sequence[str] = ()) -> HostsLines:
    """The lines of the names, in their order, at or below one of the zones; of all names if there are no zones."""
    chosen = select_names(names, zones=zones)
    plain = [name for name in chosen if name.reach is Reach.NAME]
    lines = tuple(f"{address} {name.hostname}" for name in plain for address in name.addresses)
    return HostsLines(lines, tuple(dict.fromkeys(name.hostname for name in chosen if name.reach is not Reach.NAME)))


def without_taken(made: HostsLines, foreign: bytes) -> HostsLines:
    """The lines whose names are not in the foreign text."""
    theirs = _names_in(foreign)
    taken = dict.fromkeys(_name_in(line) for line in made.lines if _name_in(line) in theirs)
    lines = tuple(line for line in made.lines if _name_in(line) not in taken)
    return HostsLines(lines, made.wildcards, tuple(taken))


def count_names(lines: Iterable[bytes]) -> int:
    """How many names the lines of our block have."""
    return len({line.split()[1] for line in lines if len(line.split()) > 1})


def _names_in(text: bytes) -> frozenset[str]:
    """The names of a hosts file, in normal form."""
    rows = (line.partition(b"#")[0].split()[1:] for line in text.splitlines())
    return frozenset(word.decode("ascii", "replace").lower().removesuffix(".") for row in rows for word in row)


def _name_in(line: str) -> str:
    return line.partition(" ")[2]
