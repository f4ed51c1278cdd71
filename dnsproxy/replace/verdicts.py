"""The verdicts: where the names that objects claim lead, as the upstreams said, for as long as that may be kept.

The law: pure, and bounded in octets. A verdict is about one name and type: for its time a claimed name is answered as a
name of the table, or passed on. After that it still answers for STALE seconds while the upstreams are asked again, so
that no client waits for them, be they slow or down. Names below wildcards have a map of their own, because whoever asks
for random ones must not push out the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from itertools import chain
from typing import Final, NamedTuple

from dnsproxy.dns.wire import Rcode, Type
from dnsproxy.replace.balancers import OF_ROW, Target
from dnsproxy.replace.replies import Reading

EXACT: Final = 4 << 20
"""Octets for the verdicts on exact names: some 9,000 names and types."""
BELOW: Final = 1 << 20
"""Octets for those on names below wildcards."""
COST: Final = 450
"""Octets of a verdict beside its name, as CPython has them."""
STALE: Final = 300.0
"""Seconds after its time for which a verdict still answers while it is renewed."""
REMEMBERED: Final = 86_400.0
"""The same for a name that led elsewhere: it is not taken while nobody can say where it leads now."""
UNANSWERED: Final = 5
"""Seconds for a verdict that no upstream gave."""
_FAMILIES: Final = frozenset({int(Type.A), int(Type.AAAA)})
MOST_SHOWN: Final = 3
"""Addresses kept of where a name leads."""


class LeadsTo(Enum):
    """Where a name leads."""

    HERE = "here"
    """To the load balancer that its row stands for."""
    NOWHERE = "nowhere"
    """There is no such record, or nobody could say."""
    ELSEWHERE = "elsewhere"


class Verdict(NamedTuple):
    """What is known about a name and type."""

    place: LeadsTo
    until: float
    sure: bool = True
    """False if no upstream could say: what was known before stays."""
    leads: tuple[bytes, ...] = ()
    """Of ELSEWHERE: some of the addresses that lead there, in wire form; none if it leads to another target of ours."""
    row: tuple[str, ...] = ()
    """Of HERE: the addresses of the row that it was judged for."""


class Led(NamedTuple):
    """A name and type that lead elsewhere."""

    name: bytes
    """A lower-case wire name."""
    rtype: int
    leads: tuple[bytes, ...]
    """Some of the addresses, in wire form."""


class _Map(dict[bytes, Verdict]):
    """Verdicts by name and type, the one that was noted longest ago first; at most so many octets."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most
        self.pushed_out: list[bytes] = []
        """The keys of verdicts that went, as there was no room, or decide no more; the owner empties it."""

    def put(self, key: bytes, verdict: Verdict) -> tuple[Verdict | None, bool]:
        """Keep a verdict as the newest: the one before it, and whether another went that led elsewhere."""
        before = self.drop(key)
        self._left -= COST + len(key)
        self[key] = verdict
        led = False
        while self._left < 0:
            oldest = next(iter(self))
            gone = self.drop(oldest)
            self.pushed_out.append(oldest)
            led = led or _elsewhere(gone) is not None
        return before, led

    def has_room(self, key: bytes) -> bool:
        """Whether put() drops no other verdict."""
        return key in self or self._left >= COST + len(key)

    def drop(self, key: bytes) -> Verdict | None:
        """Forget a verdict, if there is one."""
        found = self.pop(key, None)
        self._left += COST + len(key) if found is not None else 0
        return found


class Verdicts:
    """By lower-case wire name and type. All times are the caller's, from a clock that nobody sets."""

    def __init__(self) -> None:
        self._exact = _Map(EXACT)
        self._below = _Map(BELOW)
        self.version = 0
        """Another number after each change of which names lead elsewhere."""

    def __len__(self) -> int:
        return len(self._exact) + len(self._below)

    @property
    def names(self) -> int:
        """How many names it has; one with two types counts once."""
        return len({key[:-2] for key in chain(self._exact, self._below)})

    def find(self, name: bytes, rtype: int, now: float) -> Verdict | None:
        """The verdict that answers now, be its time over."""
        key = key_of(name, rtype)
        found = self._exact.get(key) or self._below.get(key)
        return found if found is not None and now < _end(found) else None

    def find_joined(self, name: bytes, rtype: int, now: float) -> Verdict | None:
        """The same, unless the name leads elsewhere by the other family of addresses: then it has another owner.

        Some servers say for AAAA that a name with an A record does not exist, or fail (RFC 4074 section 4).
        """
        found = self.find(name, rtype, now)
        if found is None or found.place is not LeadsTo.NOWHERE:
            return found
        other = self.find(name, other_family(rtype), now)
        if other is None or other.place is not LeadsTo.ELSEWHERE:
            return found
        # What is no more, as this reply says, was remembered from before.
        return other if now < other.until or not found.sure else found

    def find_fresh(self, name: bytes, rtype: int, now: float) -> Verdict | None:
        """The verdict that needs no other look: its time is not over."""
        found = self.find_joined(name, rtype, now)
        return found if found is not None and now < found.until else None

    def note(self, name: bytes, rtype: int, verdict: Verdict, *, below: bool, spare: bool = False) -> None:
        """Keep a verdict; `below`: of a name below a wildcard; `spare`: only if it pushes out no other one."""
        verdicts, key = self._below if below else self._exact, key_of(name, rtype)
        if spare and not verdicts.has_room(key):
            return
        if verdict.place is LeadsTo.ELSEWHERE:
            other = key_of(name, other_family(rtype))
            found = verdicts.get(other)
            if found is not None and found.place is LeadsTo.NOWHERE:
                verdicts.pushed_out.append(other)  # it decides no more by itself, see find_joined()
        before, led = verdicts.put(key, verdict)
        self.version += led or _elsewhere(before) != _elsewhere(verdict)

    def end_all(self, now: float) -> None:
        """Have every name judged again, as the load balancers have changed; until then its verdict answers."""
        for verdicts in (self._exact, self._below):
            verdicts.update({key: one._replace(until=min(one.until, now)) for key, one in verdicts.items()})

    def expire(self, now: float) -> list[bytes]:
        """Drop the verdicts that answer no more; the keys of those that need another look, or went before.

        To be called about once a second, as these keys are kept until then.
        """
        over = []
        for verdicts in (self._exact, self._below):
            over += verdicts.pushed_out
            verdicts.pushed_out = []
            for key, one in list(verdicts.items()):
                if one.until <= now:
                    over.append(key)
                    if _end(one) <= now:
                        self.version += _elsewhere(verdicts.drop(key)) is not None
        return over

    def led(self) -> list[Led]:
        """The names that lead elsewhere."""
        both = chain(self._exact.items(), self._below.items())
        return [
            Led(key[:-2], int.from_bytes(key[-2:], "big"), one.leads)
            for key, one in both
            if one.place is LeadsTo.ELSEWHERE and one.leads
        ]

    def counts(self) -> dict[LeadsTo, int]:
        """How many names and types lead where."""
        counted = Counter(one.place for one in chain(self._exact.values(), self._below.values()))
        return {place: counted[place] for place in LeadsTo}


def judge(reading: Reading | None, rtype: int, *, own: Target, now: float) -> Verdict | None:
    """What a reply to a query of this type says about a name whose row has the addresses `own`.

    None: the other family has to be asked, as this is an error or has no address. One address that leads elsewhere, or
    to another target than the row's, is enough for ELSEWHERE: the reply has to keep it.
    """
    if reading is None:
        return Verdict(LeadsTo.NOWHERE, now + UNANSWERED, sure=False)
    if reading.rcode not in (Rcode.NOERROR, Rcode.NXDOMAIN):
        return None if rtype in _FAMILIES else Verdict(LeadsTo.NOWHERE, now + UNANSWERED, sure=False)
    until = now + reading.ttl
    if reading.rcode == Rcode.NXDOMAIN:
        return Verdict(LeadsTo.NOWHERE, until)
    if not reading.leads:
        return None if rtype in _FAMILIES else Verdict(LeadsTo.ELSEWHERE, now)
    targets = {one.target for one in reading.leads}
    if targets <= {OF_ROW, own}:
        return Verdict(LeadsTo.HERE, until)
    return Verdict(LeadsTo.ELSEWHERE, until, leads=_shown(reading))


def join_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a name by those on its types, at least one: a single type that leads elsewhere decides."""
    places = {one.place for one in verdicts}
    place = next(one for one in (LeadsTo.ELSEWHERE, LeadsTo.NOWHERE, LeadsTo.HERE) if one in places)
    deciding = [one for one in verdicts if one.place is place]
    return Verdict(place, min(one.until for one in verdicts), all(one.sure for one in deciding), deciding[0].leads)


def other_family(rtype: int) -> int:
    """AAAA for A, and A for AAAA."""
    return int(Type.A) if rtype == Type.AAAA else int(Type.AAAA)


def judged_type(rtype: int) -> int:
    """The type whose verdict counts for a query: that of A for every type without addresses of its own."""
    return rtype if rtype == Type.AAAA else int(Type.A)


def key_of(name: bytes, rtype: int) -> bytes:
    """A name and a type as one key."""
    return name + rtype.to_bytes(2, "big")


def _shown(reading: Reading) -> tuple[bytes, ...]:
    return tuple(one.address for one in reading.leads if one.target is None)[:MOST_SHOWN]


def _end(verdict: Verdict) -> float:
    """When a verdict answers no more."""
    return verdict.until + (REMEMBERED if verdict.place is LeadsTo.ELSEWHERE else STALE)


def _elsewhere(verdict: Verdict | None) -> tuple[bytes, ...] | None:
    return verdict.leads if verdict is not None and verdict.place is LeadsTo.ELSEWHERE else None
