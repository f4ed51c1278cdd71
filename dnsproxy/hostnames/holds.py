"""Holds: which namespace has a name, and how long a claim of another namespace waits until the name changes hands.

The law: pure; times are passed in. A name passes at once within its namespace, and to another namespace only after
`seconds` in which the ranking gave it to that one, or no object of the holder claimed it. After that the ranking alone
decides, so that all servers come to the same verdict; a holder that comes back in time keeps the age of its first
object, so that a reinstalled Ingress is not younger than the claims that lay waiting for it.

Before begin() the ranking decides alone: the first lists of several sources arrive in any order. A snapshot has the
claims of all sources, so restore() begins at once: what happens while no server runs waits too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Origin

MOST_RESERVED: Final = 20_000
"""Names of one namespace that stay reserved without any claim of it; creating and deleting objects must not cost us
memory without an end."""

Row = tuple[str, Reach]


class Tenure(NamedTuple):
    """Who has a name."""

    holder: Origin
    """The oldest object by which its namespace got the name; it may be gone."""
    until: float | None = None
    """Until when claims of other namespaces wait, in seconds since the epoch; None: no claim has to wait yet."""
    ended: bool = False
    """Whether the time is over: the ranking decides now."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """A tenure that the claims alone do not show, for a snapshot."""

    hostname: str
    reach: Reach
    holder: Origin
    until: float | None = None


class Change(NamedTuple):
    """A name that is about to pass to another namespace."""

    hostname: str
    holder: Origin
    rival: Origin
    until: float


class Holds:
    """The tenure of each name that the cluster's objects have; `seconds`: 0 if claims never wait."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._begun = False
        # The objects of the claims themselves, by strings that the claim store has: half a million names cost no more.
        self._holders: dict[Reach, dict[str, Origin]] = {reach: {} for reach in Reach}
        self._until: dict[Row, float] = {}
        """In the order of the times, because all wait equally long."""
        self._reserved: Counter[str] = Counter()
        self._ended: set[Row] = set()
        self._rivals: dict[Row, Origin] = {}
        self._news: list[Change] = []
        self._unshown: dict[Row, None] = {}
        """Names whose holder the claims alone would not show after a restart."""
        self.version = 0
        """Grows with every change of those."""

    @property
    def waits(self) -> bool:
        """Whether a claim of another namespace ever waits."""
        return self._seconds > 0

    def begin(self) -> None:
        """All sources have reported: from now on a name has a holder."""
        self._begun = True

    def restore(self, rows: Iterable[Held], *, now: float) -> None:
        """Begin with the tenures of a snapshot; those of all other names follow from its claims."""
        self.begin()
        if not self._seconds:
            return
        for row in sorted(rows, key=lambda row: row.until or 0.0):
            self._holders[row.reach][row.hostname] = row.holder
            self._unshown[row.hostname, row.reach] = None
            if row.until is not None:
                # The flag may have been another one.
                self._until[row.hostname, row.reach] = min(row.until, now + self._seconds)
                self._reserved[row.holder.namespace] += 1

    def rows(self) -> Iterator[Held]:
        """The tenures for a snapshot; they may change in between."""
        for hostname, reach in self._unshown.copy():
            holder = self._holders[reach].get(hostname)
            if holder is not None:
                yield Held(hostname, reach, holder, self._until.get((hostname, reach)))

    def tenure(self, hostname: str, reach: Reach) -> Tenure | None:
        """Who has a name; None if the ranking decides alone."""
        holder = self._holders[reach].get(hostname) if self._begun else None
        if holder is None:
            return None
        row = hostname, reach
        return Tenure(holder, self._until.get(row), row in self._ended)

    def note(self, row: Row, *, winner: Origin | None, rival: Origin | None, claimed: bool, now: float) -> bool:
        """Note a verdict; `winner` has the name, `rival` of another namespace would have it by the ranking alone.

        `claimed`: whether the holder's namespace claims the name at all. Returns whether the tenure's time changed.
        """
        if not self._seconds:
            return False
        known = winner is not None and rival is None and self._holders[row[1]].get(row[0]) is winner
        if known and row not in self._unshown:
            # Nearly every name, each time that it is judged again.
            return False
        changed = self._note(row, winner=winner, rival=rival, claimed=claimed, now=now)
        self._remember(row, winner=winner, rival=rival)
        return changed

    def _remember(self, row: Row, *, winner: Origin | None, rival: Origin | None) -> None:
        """Note whether the claims alone show the holder: then it is the origin of the winner, and first by rank."""
        hostname, reach = row
        holder = self._holders[reach].get(hostname)
        shown = holder is None or (holder == winner and rival is None)
        if shown != (row in self._unshown) or (not shown and row in self._until):
            self.version += 1
        if shown:
            self._unshown.pop(row, None)
        elif winner is not None or row in self._until:
            self._unshown[row] = None

    def _note(self, row: Row, *, winner: Origin | None, rival: Origin | None, claimed: bool, now: float) -> bool:
        hostname, reach = row
        holders = self._holders[reach]
        if winner is not None:
            self._hand_over(row, winner, rival)
        holder = holders.get(hostname)
        if holder is None:
            return False
        ended = row in self._ended
        self._ended.discard(row)
        if rival is None and (claimed or winner is not None):
            return self._stop(row)
        if not self._begun or ended or (rival is None and not self._may_reserve(row, holder)):
            self._stop(row)
            del holders[hostname]
            return True
        return self._run(row, holder, rival, now)

    def end_due(self, now: float) -> Iterator[str]:
        """The hostnames whose time is over; the ranking decides about them until the next note()."""
        while self._until:
            row, until = next(iter(self._until.items()))
            if until > now:
                return
            self._stop(row)
            self._ended.add(row)
            yield row[0]

    @property
    def due(self) -> float | None:
        """When the next time is over; None if no time runs."""
        return next(iter(self._until.values()), None)

    def running(self) -> list[str]:
        """The names whose time runs, without wildcards."""
        return [hostname for hostname, reach in self._until if reach is Reach.NAME]

    @property
    def contested(self) -> int:
        """How many names another namespace waits for."""
        return len(self._rivals)

    def take_news(self) -> list[Change]:
        """The names that another namespace began to wait for since the last call."""
        news, self._news = self._news, []
        return news

    def _hand_over(self, row: Row, winner: Origin, rival: Origin | None) -> None:
        hostname, reach = row
        holder = self._holders[reach].get(hostname)
        if holder is None or holder.namespace != winner.namespace:
            self._stop(row)
            self._holders[reach][hostname] = winner
        elif winner.created == holder.created or (winner.created < holder.created and rival is None):
            # Of one age: an object that was read again replaces the one of before, which is then freed. While a rival
            # comes first, an older object must not give its age to the others, which could then pass that rival.
            self._holders[reach][hostname] = winner

    def _may_reserve(self, row: Row, holder: Origin) -> bool:
        return row in self._until or self._reserved[holder.namespace] < MOST_RESERVED

    def _run(self, row: Row, holder: Origin, rival: Origin | None, now: float) -> bool:
        started = row not in self._until
        if started:
            self._until[row] = now + self._seconds
            self._reserved[holder.namespace] += 1
        if rival is None:
            self._rivals.pop(row, None)
        elif row not in self._rivals:
            self._news.append(Change(row[0], holder, rival, self._until[row]))
            self._rivals[row] = rival
        return started

    def _stop(self, row: Row) -> bool:
        self._rivals.pop(row, None)
        if self._until.pop(row, None) is None:
            return False
        namespace = self._holders[row[1]][row[0]].namespace
        self._reserved[namespace] -= 1
        if not self._reserved[namespace]:
            del self._reserved[namespace]
        return True
