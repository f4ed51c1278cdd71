"""The lines of a hosts file for the names of a publication.

The law: a line is an address and one name, because some readers stop at a number of names or octets (musl: 511), and
its order depends on the names alone. What a hosts file cannot say is counted and told, never half said. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dnsproxy.claims import Reach
from dnsproxy.names import is_within
from dnsproxy.publish.publication import Name


@dataclass(frozen=True, slots=True)
class HostsLines:
    """What a publication comes to."""

    lines: tuple[str, ...]
    names: int
    wildcards: tuple[str, ...] = ()
    """Hostnames that a hosts file cannot express (hosts(5) knows no patterns)."""


def make_lines(names: Iterable[Name], *, zones: Sequence[str] = ()) -> HostsLines:
    """The lines of the names, in their order, at or below one of the zones, or of all where none is given."""
    chosen = select_names(names, zones=zones)
    plain = [name for name in chosen if name.reach is Reach.NAME]
    lines = tuple(f"{address} {name.hostname}" for name in plain for address in name.addresses)
    wildcards = dict.fromkeys(name.hostname for name in chosen if name.reach is not Reach.NAME)
    return HostsLines(lines, len(plain), tuple(wildcards))


def select_names(names: Iterable[Name], *, zones: Sequence[str]) -> list[Name]:
    """The names at or below one of the zones; all where none is given."""
    return [name for name in names if not zones or _is_within_any(name.hostname.removeprefix("*."), zones)]


def count_names(lines: Iterable[bytes]) -> int:
    """How many names lines of ours hold."""
    return len({line.split()[1] for line in lines if len(line.split()) > 1})


def _is_within_any(name: str, zones: Sequence[str]) -> bool:
    return any(is_within(name, zone) for zone in zones)
