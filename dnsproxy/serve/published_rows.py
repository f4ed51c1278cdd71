"""The published rows: which names of a table its readers may copy to other places, and when each is asked about again.

The law: all times are the caller's, and nobody is asked from here. A claimed exact name is published while its last
verdict says that its row answers it; a claimed wildcard never, because nobody can ask for all its names. A name without
a verdict is not published, and what was known stays while public DNS is silent. A hidden row is not removed: the name
is forwarded, and no wildcard covers it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, fields
from heapq import heappop, heappush
from typing import Final, NamedTuple

from dnsproxy.answers.answer_records import FORWARDED, Answers
from dnsproxy.answers.table import HostTable, Wildcard
from dnsproxy.forward.verification import is_answered
from dnsproxy.replace.verdicts import LeadsTo, Verdict

EACH_SECOND: Final = 50
"""Names asked about each second, up to 15,000 names."""
MOST_EACH_SECOND: Final = 200
_ROUND: Final = 300.0
"""Seconds in which more names than that are all asked about, up to MOST_EACH_SECOND."""
BURST: Final = 500
"""Names asked about without a pause after a time without names to ask: as many as rewrite lines can be."""
_LEAST: Final = 5.0
"""Seconds before the same name is asked about again."""
_SHORTEST: Final = 0.001
SILENCE: Final = 30.0
"""The same for a new name that public DNS said nothing about. After the second silence its row counts, as for pods."""


@dataclass(frozen=True, slots=True)
class _View(HostTable):
    """A table with hidden rows."""

    source: HostTable | None = None
    """Kept, because a table without references gives its dicts to a later one."""


class Shown(NamedTuple):
    """What may be published of a table."""

    table: HostTable
    unknown: int
    """Names without a verdict, which are hidden."""


class PublishedRows:
    """Follows the claimed names of the tables that it is shown."""

    def __init__(self) -> None:
        self.version = 0
        """Another number after each change of what may be published."""
        self.unknown = 0
        """Followed names without a verdict."""
        self._places: dict[bytes, LeadsTo | None] = {}
        """By each followed name."""
        self._unasked: deque[bytes] = deque()
        self._due: list[tuple[float, bytes]] = []
        """A heap: when a name is asked about again."""
        self._ended: list[tuple[float, bytes]] = []
        """The same of names that are due by now."""
        self._silent: set[bytes] = set()
        """Names without a verdict that public DNS said nothing about, once."""

    def __len__(self) -> int:
        return len(self._places)

    def show(self, table: HostTable) -> Generator[None, None, Shown]:
        """The table without its hidden rows, one step a row; new names are followed from now on."""
        hidden, unknown = [], 0
        for name, answers in table.exact.items():
            if answers.claimed.is_conditional:
                place = self._follow(name)
                unknown += place is None
                if place is None or not is_answered(place, answers.claimed):
                    hidden.append(name)
            yield
        wildcards: dict[bytes, Wildcard] = {}
        for parent, found in table.wildcards.items():
            if any(_is_claimed(one) for one in found):
                wildcards[parent] = Wildcard(*(FORWARDED if _is_claimed(one) else one for one in found))
            yield
        if not hidden and not wildcards:
            return Shown(table, unknown)
        exact = dict(table.exact)
        for name in hidden:
            exact[name] = FORWARDED
            yield
        return Shown(_view(table, exact, {**table.wildcards, **wildcards}), unknown)

    def wait(self, now: float) -> float:
        """Seconds until a name is to be asked about."""
        if self._unasked or self._ended:
            return 0.0
        return _pause(self._due[0][0] - now) if self._due else math.inf

    def take(self, now: float) -> bytes | None:
        """The next name to be asked about, new ones first; None if none is due. note() or drop() must follow."""
        if self._unasked:
            return self._unasked.popleft()
        if self._ended:
            return self._ended.pop()[1]
        return heappop(self._due)[1] if not self.wait(now) else None

    def note(self, name: bytes, verdict: Verdict, now: float) -> None:
        """Keep what was found out about a name that was taken."""
        if name not in self._places:
            return
        before, due = self._places[name], max(verdict.until, now + _LEAST)
        if verdict.sure or (before is None and name in self._silent):
            self._silent.discard(name)
            self._places[name] = verdict.place
            self.unknown -= before is None
            self.version += before is not verdict.place
        elif before is None:
            self._silent.add(name)
            due = now + SILENCE
        heappush(self._due, (due, name))

    def drop(self, name: bytes) -> None:
        """Follow a name no more that was taken, as nobody claims it any more."""
        self._silent.discard(name)
        if name in self._places:
            self.unknown -= self._places.pop(name) is None

    def end_all(self) -> None:
        """Have every name asked about again, as the load balancers have changed; until then its verdict counts."""
        self._ended += self._due
        self._due = []

    def clear(self) -> None:
        """Forget everything."""
        self._places, self._unasked, self._due, self._ended = {}, deque(), [], []
        self._silent, self.unknown = set(), 0
        self.version += 1

    def _follow(self, name: bytes) -> LeadsTo | None:
        if name not in self._places:
            self._places[name] = None
            self._unasked.append(name)
            self.unknown += 1
        return self._places[name]


class Allowance:
    """How many names may be asked about: at a steady rate, and BURST at once after a rest."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._at = -math.inf

    def wait(self, now: float, *, names: int) -> float:
        """Seconds until one more may be asked about, among so many."""
        rate = min(max(EACH_SECOND, names / _ROUND), MOST_EACH_SECOND)
        self._left = min(BURST, self._left + (now - self._at) * rate)
        self._at = now
        return _pause((1 - self._left) / rate)

    def take(self) -> None:
        """Count one."""
        self._left -= 1


def _pause(seconds: float) -> float:
    """None at all in place of the shortest ones, which rounding could make endless."""
    return seconds if seconds > _SHORTEST else 0.0


def _is_claimed(answers: Answers | None) -> bool:
    return answers is not None and answers.claimed.is_conditional


def _view(table: HostTable, exact: dict[bytes, Answers], wildcards: dict[bytes, Wildcard]) -> HostTable:
    rest = {one.name: getattr(table, one.name) for one in fields(HostTable)}
    return _View(**rest | {"exact": exact, "wildcards": wildcards}, source=table)
