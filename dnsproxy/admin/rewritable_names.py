"""Rewritable names: what a table answers with Services, in the form that rewrite lines of a CoreDNS can have.

The law: CoreDNS with a line for each of these names, and for each exempt one, gives every name the Service that the
table gives it, and leaves all other names alone. A name is exempt if the table forwards it, or answers it with plain
addresses, although a wildcard of a Service covers it. With too many names the wildcards are left out first, because
each needs all its exempt names, and then the names of the youngest objects. Pure; done in steps of some microseconds.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dnsproxy.answers.answer_records import Answers
from dnsproxy.answers.table import HostTable
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach, hostname_of

MOST: Final = 2_000
"""Names kept, four times as many as an install writes."""
MOST_EXEMPT: Final = 1_000

Age = Callable[[str, Reach], str]
"""Since when a name is claimed, in a form that sorts as text."""
Row = tuple[str, str, str, str]
"""Age, hostname, reach and Service, in the order in which names are kept."""
Key = tuple[str, Reach]


@dataclass(slots=True)
class RewritableNames:
    """The names of one table."""

    rows: list[Row] = field(default_factory=list)
    """Those of the oldest objects first."""
    exempt: list[Key] = field(default_factory=list)
    """Sorted."""
    plain: int = 0
    """How many names are answered with plain addresses."""
    left_out: int = 0
    """How many names of Services are not in it."""

    def keep(self, row: Row) -> None:
        """Keep a row, unless there are MOST older ones."""
        if len(self.rows) < MOST or row < self.rows[-1]:
            insort(self.rows, row)
        else:
            self.left_out += 1
        if len(self.rows) > MOST:
            self.rows.pop()
            self.left_out += 1


def find_rewritable(table: HostTable, age: Age) -> Generator[None, None, RewritableNames]:
    """The names of a table."""
    found = RewritableNames()
    wildcards: dict[bytes, set[Reach]] = {}
    for wire, reach, answers in _rows_of(table):
        if answers.service in table.unready or not answers.by_type:
            pass
        elif not answers.service:
            found.plain += 1
        else:
            hostname = _hostname(wire, reach)
            found.keep((age(hostname, reach), hostname, reach.value, answers.service))
            if reach is not Reach.NAME:
                wildcards.setdefault(wire, set()).add(reach)
        yield
    exempt: set[Key] = set()
    for key in _exempt(table, wildcards) if wildcards and not found.left_out else ():
        if key is not None and len(exempt) <= MOST_EXEMPT:
            exempt.add(key)
        yield
    if found.left_out or len(exempt) > MOST_EXEMPT:
        exempt.clear()
        _leave_wildcards_out(found)
    found.exempt = sorted(exempt, key=lambda key: (key[0], key[1].value))
    return found


def _rows_of(table: HostTable) -> Iterator[tuple[bytes, Reach, Answers]]:
    for wire, answers in table.exact.items():
        yield wire, Reach.NAME, answers
    for wire, wildcard in table.wildcards.items():
        for reach, one in ((Reach.ONE_LABEL, wildcard.one_label), (Reach.ANY_LABELS, wildcard.any_labels)):
            if one is not None:
                yield wire, reach, one


def _leave_wildcards_out(found: RewritableNames) -> None:
    kept = [row for row in found.rows if row[2] == Reach.NAME.value]
    found.left_out += len(found.rows) - len(kept)
    found.rows = kept


def _exempt(table: HostTable, wildcards: Mapping[bytes, set[Reach]]) -> Iterator[Key | None]:
    """The names that the table gives no Service, although a wildcard covers them; None for each other row."""
    for wire, reach, answers in _rows_of(table):
        is_ours = bool(answers.service) and answers.service not in table.unready
        yield None if is_ours or not _covers(wildcards, wire, reach) else (_hostname(wire, reach), reach)
    for wire in table.never:
        is_row = wire in table.exact
        yield None if is_row or not _covers(wildcards, wire, Reach.NAME) else (hostname_of(wire), Reach.NAME)
    for zone in table.closed:
        # A wildcard inside the zone still covers its names, and comes first.
        is_row = zone in table.exact
        yield None if is_row or not _covers(wildcards, zone, Reach.NAME) else (hostname_of(zone), Reach.NAME)
        has_own = Reach.ANY_LABELS in wildcards.get(zone, ())
        yield None if has_own or not _covers(wildcards, zone, Reach.ANY_LABELS) else _all_below(zone)


def _covers(wildcards: Mapping[bytes, set[Reach]], wire: bytes, reach: Reach) -> bool:
    """Whether a wildcard covers a name, or names below a wildcard whose own parent is `wire`."""
    if reach is Reach.ONE_LABEL and Reach.ANY_LABELS in wildcards.get(wire, ()):
        return True
    above = names.ancestors(wire)
    is_parent = reach is Reach.NAME and above and Reach.ONE_LABEL in wildcards.get(above[0], ())
    return bool(is_parent) or any(Reach.ANY_LABELS in wildcards.get(one, ()) for one in above)


def _all_below(zone: bytes) -> Key:
    return f"*.{hostname_of(zone)}", Reach.ANY_LABELS


def _hostname(wire: bytes, reach: Reach) -> str:
    return hostname_of(wire) if reach is Reach.NAME else f"*.{hostname_of(wire)}"
