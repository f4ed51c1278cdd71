"""Claimed subjects: the ingress classes and Gateways that have hostnames here, where the target `auto` decides.

The law: a hostname counts for a subject while a claim of it has the name, or would have it if a Service answered for
the subject; so a subject is known before it is steered, and while its relay is away. A new subject, and a new load
balancer in a status, cost a look at the names judged since the last look; numbers, examples and what vanished follow
with a count of all names. Pure; both are done in steps of some microseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Generator, Iterable
from typing import Final, TypeVar

import msgspec

from dnsproxy.dns.names import is_wildcard
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import AUTO
from dnsproxy.hostnames.wildcards import reaches

MOST: Final = 1_000
"""Subjects."""
MOST_EXAMPLES: Final = 5
MOST_POINTS: Final = 16
"""Load balancers of one subject."""

Item = TypeVar("Item", str, tuple[bool, str])


class ClaimedSubject(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A class or Gateway with its hostnames. The field names are keys of the JSON of `/subjects`."""

    subject: str
    """`ingressclass/NAME` or `gateway/NAMESPACE/NAME`."""
    hostnames: int
    """How many."""
    examples: tuple[str, ...]
    """The first of them: names in the order of the alphabet, then wildcards."""
    status: tuple[str, ...]
    """The first addresses and hostnames in the load balancer statuses of its objects, sorted."""


class _Tally:
    """What is counted of one subject; it keeps no more than is shown."""

    __slots__ = ("examples", "hostnames", "points")

    def __init__(self) -> None:
        self.hostnames = 0
        self.examples: list[tuple[bool, str]] = []
        self.points: list[str] = []

    def add(self, hostname: str) -> None:
        self.hostnames += 1
        _keep(self.examples, (is_wildcard(hostname), hostname), most=MOST_EXAMPLES)

    def see(self, status: Iterable[str]) -> None:
        for point in status:
            _keep(self.points, point, most=MOST_POINTS)

    def shown(self, subject: str) -> ClaimedSubject:
        examples = tuple(hostname for _, hostname in self.examples)
        return ClaimedSubject(subject=subject, hostnames=self.hostnames, examples=examples, status=tuple(self.points))


class ClaimedSubjects:
    """The subjects of one registry, which may change between two steps."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tallies: dict[str, _Tally] = {}
        self._added: dict[str, set[str]] = {}
        """The hostnames of the subjects that came after the last count: a name may be judged several times."""
        self._seen = 0

    @property
    def left_out(self) -> int:
        """Subjects beyond MOST."""
        return max(0, len(self._tallies) - MOST)

    def subjects(self) -> tuple[ClaimedSubject, ...]:
        """As of the last count or addition, sorted."""
        return tuple(self._tallies[subject].shown(subject) for subject in _in_turns(self._tallies, MOST))

    def add_fresh(self) -> Generator[None, None, bool]:
        """Add what the names judged since the last call have new; False if they are too many, and need a count."""
        judged = self._registry.outcomes.judged
        fresh = self._registry.outcomes.judged_since(self._seen)
        if fresh is None:
            return False
        self._seen = judged
        for hostname in fresh if self._is_automatic else ():
            for subject, claims in self._claims_of(hostname).items():
                self._add_fresh(subject, hostname, claims)
            yield
        return True

    def count(self) -> Generator[None, None, None]:
        """Find all subjects anew."""
        # Names that are judged from here on are fresh for the next addition.
        self._seen = self._registry.outcomes.judged
        tallies: dict[str, _Tally] = {}
        for hostname in self._registry.store.names() if self._is_automatic else ():
            for subject, claims in self._claims_of(hostname).items():
                _count(_tally(tallies, subject), hostname, claims)
            yield
        self._tallies, self._added = tallies, {}

    @property
    def _is_automatic(self) -> bool:
        return AUTO in self._registry.targets.named()

    def _claims_of(self, hostname: str) -> dict[str, list[Claim]]:
        """The claims that have a hostname or would have it, by subject."""
        found: dict[str, list[Claim]] = {}
        for reach in reaches(hostname):
            for claim in self._registry.verdict(hostname, reach).contenders:
                subject = self._registry.targets.subject_of(claim)
                if subject:
                    found.setdefault(subject, []).append(claim)
        return found

    def _add_fresh(self, subject: str, hostname: str, claims: Iterable[Claim]) -> None:
        if subject not in self._tallies:
            self._added[subject] = set()
        tally = _tally(self._tallies, subject)
        added = self._added.get(subject)
        if added is not None and hostname not in added:
            added.add(hostname)
            tally.add(hostname)
        for claim in claims:
            tally.see(claim.terms.status)


def _tally(tallies: dict[str, _Tally], subject: str) -> _Tally:
    found = tallies.get(subject)
    if found is None:
        found = tallies[subject] = _Tally()
    return found


def _count(tally: _Tally, hostname: str, claims: Iterable[Claim]) -> None:
    tally.add(hostname)
    for claim in claims:
        tally.see(claim.terms.status)


def _keep(kept: list[Item], item: Item, *, most: int) -> None:
    """Insert an item into a sorted list of the first ones, each once."""
    place = bisect_left(kept, item)
    if place < most and kept[place : place + 1] != [item]:
        kept.insert(place, item)
        del kept[most:]


def _in_turns(subjects: Iterable[str], most: int) -> list[str]:
    """At most so many subjects, sorted; if they are more, the classes and each namespace with Gateways take turns.

    A tenant with a thousand Gateways must not push those of others out.
    """
    places: Counter[str] = Counter()
    turns: list[tuple[int, str]] = []
    for subject in sorted(subjects):
        place = subject.rpartition("/")[0]
        turns.append((places[place], subject))
        places[place] += 1
    return sorted(subject for _, subject in sorted(turns)[:most])
