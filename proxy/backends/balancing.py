"""How an address of a backend is chosen: the order in which a connection tries them.

The law: pure; times are seconds of a monotonic clock that the caller reads. Within one order the families alternate
(RFC 8305 section 4), so that an unreachable family costs one attempt. From one order to the next the addresses of a
family rotate, so that each pod of a Service gets its share. A failed address is tried last for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice, zip_longest
from math import inf
from typing import Final, Generic, Protocol, TypeVar

FAILED_SECONDS: Final = 30.0
"""Seconds for which a failed address is tried last."""

MOST: Final = 8
"""Addresses whose answer one connection waits for, so that each gets enough of the connect timeout."""
MOST_TRIED: Final = 128
"""Addresses that one connection tries: those that refuse cost no time, and must not hide one that lives."""


class Addressed(Protocol):
    """A member of a pool."""

    @property
    def host(self) -> str:
        """The IP literal; IPv6 has colons."""
        ...


AddressT = TypeVar("AddressT", bound=Addressed)


class Pool(Generic[AddressT]):
    """The addresses of one backend, and which of them have failed recently."""

    def __init__(self) -> None:
        self.addresses: tuple[AddressT, ...] = ()
        """In the order given, without duplicates."""
        self._failed: dict[AddressT, float] = {}
        self._turn = 0

    def replace(self, addresses: Iterable[AddressT], *, last: Iterable[AddressT] = ()) -> None:
        """Replace all addresses; an address that stays keeps its state. Those in `last` are tried after all others."""
        spare = dict.fromkeys(last, inf)
        self.addresses = tuple(dict.fromkeys((*addresses, *spare)))
        kept = {one: until for one, until in self._failed.items() if one in self.addresses and until < inf}
        # Like failed ones, for as long as they are given here: so the order of each connection needs no other rule.
        self._failed = {**kept, **spare}

    def note_failure(self, address: AddressT, *, now: float) -> None:
        """Record that an address did not answer."""
        if address in self.addresses:
            self._failed[address] = now + FAILED_SECONDS

    def note_success(self, address: AddressT) -> None:
        """Record that an address answered."""
        if self._failed:
            self._failed.pop(address, None)

    def order(self, *, now: float) -> tuple[AddressT, ...]:
        """The addresses that the next connection should try, best first; at most MOST_TRIED."""
        if len(self.addresses) < 2:  # noqa: PLR2004  # nothing to choose
            return self.addresses
        self._failed = {one: until for one, until in self._failed.items() if until > now}
        good = [one for one in self.addresses if one not in self._failed]
        # Of the failed addresses, the one that failed first comes first.
        bad = sorted(self._failed, key=self._failed.__getitem__)
        self._turn += 1
        return tuple(islice(chain(self._interleaved(good), bad), MOST_TRIED))

    def _interleaved(self, addresses: Sequence[AddressT]) -> Iterable[AddressT]:
        # IPv6 first, as in RFC 8305 section 4 and the default policy of RFC 6724.
        families = [[one for one in addresses if (":" in one.host) is is_v6] for is_v6 in (True, False)]
        pairs = zip_longest(*(self._rotated(family) for family in families if family))
        return (one for one in chain.from_iterable(pairs) if one is not None)

    def _rotated(self, family: list[AddressT]) -> list[AddressT]:
        start = self._turn % len(family)
        return family[start:] + family[:start]
