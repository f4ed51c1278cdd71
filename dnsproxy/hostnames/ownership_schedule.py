"""The schedule of lookups of public records: which hostname is next, and when.

The law: pure; three queues take turns, so that no number of names in one starves the others: new names, names to look
up again at a set time, and all names, once per round. In each the namespaces take turns. A full one, which has all the
lookups that it may have, delays no other: a round begins at its time, even if names of the last one are left.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Final

from dnsproxy.hostnames.fair_queue import FairQueue, Turn

MOST_NEW: Final = 20_000
"""New hostnames of a namespace that are queued; beyond that, the next round begins soon and reaches them."""


@dataclass(frozen=True, slots=True)
class OwnershipPace:
    """How often public records are looked up; all in seconds."""

    gap: float = 0.3
    """Between the beginnings of two lookups: about three a second, whatever the number of names."""
    first: float = 0.002
    """Between the beginnings of two first lookups with --ownership enforce, where no name is answered before it."""
    every: float = 3600.0
    """Between the beginnings of two rounds."""
    jitter: float = 0.1
    """The fraction of `every` by which a round may start earlier or later, so that replicas do not query together."""
    confirm: float = 30.0
    """From a first contradiction to the lookup that confirms it: a record and a load balancer never change at once."""
    doubted: float = 300.0
    """Between two lookups of an unverified hostname, so that a corrected record takes effect soon; and the shortest
    time between two rounds, whatever number of new names brings the next one forward."""
    timeout: float = 5.0
    """For an answer."""
    rest: float = 0.1
    """Before more hostnames are skipped: 100,000 that need no lookup are half a second of work, and not urgent."""


DEFAULT_PACE: Final = OwnershipPace()


class OwnershipSchedule:
    """All times are the caller's, from a monotonic clock."""

    def __init__(self, pace: OwnershipPace) -> None:
        self._pace = pace
        self._new = FairQueue(MOST_NEW)
        self._timed: list[tuple[float, str, str]] = []
        self._due = FairQueue(MOST_NEW, newest_first=False)
        self._at: dict[tuple[str, str], float] = {}
        """By hostname and namespace: each namespace with a claim has the name in a queue of its own."""
        self._turn = 0
        self._round = FairQueue(sys.maxsize, newest_first=False)
        self._listed: Iterator[str] = iter(())
        self._left = 0
        """Hostnames of the round that are in no queue yet."""
        self._soonest = self._round_due = 0.0

    def note(self, hostnames: Iterable[str], *, namespace: str = "") -> None:
        """The claims of a namespace to these hostnames are new, or have changed."""
        for hostname in hostnames:
            if not self._new.put(hostname, namespace):
                self._round_due = min(self._round_due, self._soonest)
                return

    def again(self, hostname: str, *, at: float, namespace: str = "") -> None:
        """Return this hostname at that time too, in the turn of the namespace; replaces an earlier time."""
        self._at[hostname, namespace] = at
        heappush(self._timed, (at, hostname, namespace))

    @property
    def new(self) -> int:
        """How many new hostnames are queued."""
        return len(self._new)

    def round_is_due(self, now: float) -> bool:
        """Whether begin_round should be called."""
        return not self._left and now >= self._round_due

    def begin_round(self, hostnames: Collection[str], *, now: float, random: float) -> None:
        """Return each of these hostnames once, after enlist() has queued it; `random` is from [0, 1)."""
        self._listed, self._left = iter(hostnames), len(hostnames)
        self._soonest = now + self._pace.doubted
        self._round_due = now + self._pace.every * (1 + self._pace.jitter * (2 * random - 1))

    def enlist(self, namespaces: Callable[[str], Iterable[str]]) -> bool:
        """Queue the round's next hostname for each namespace that claims it. Returns whether there was one."""
        if not self._left:
            # Release the names of the listed round.
            self._listed = iter(())
            return False
        self._left -= 1
        hostname = next(self._listed)
        for namespace in namespaces(hostname):
            # What is left of the last round keeps its place.
            self._round.put(hostname, namespace)
        return True

    def take(self, now: float, full: Container[str] = ()) -> Turn | None:
        """The next hostname; None if none is due. The namespaces in `full` wait."""
        for _ in range(3):
            self._turn = (self._turn + 1) % 3
            turn = (self._new.take, self._round.take, partial(self._take_timed, now))[self._turn](full)
            if turn is not None:
                return turn
        return None

    def pause(self, now: float, full: Container[str] = ()) -> float:
        """Seconds until take() has a hostname, if none is noted before."""
        if self._left or any(queue.has_turn(full) for queue in (self._new, self._due, self._round)):
            return 0.0
        due = min(self._round_due, self._timed[0][0]) if self._timed else self._round_due
        return max(0.0, due - now)

    def take_new(self, full: Container[str] = ()) -> Turn | None:
        """The next new hostname; None if there is none. The namespaces in `full` wait."""
        return self._new.take(full)

    def _take_timed(self, now: float, full: Container[str]) -> Turn | None:
        while self._timed and self._timed[0][0] <= now:
            at, hostname, namespace = heappop(self._timed)
            if self._at.get((hostname, namespace)) != at:
                continue
            del self._at[hostname, namespace]
            if not self._due.put(hostname, namespace):
                self.again(hostname, at=now + self._pace.doubted, namespace=namespace)
        following = self._due.take(full)
        if following is not None:
            # One look is for all that claim the name.
            self._due.discard(following.hostname)
        return following
