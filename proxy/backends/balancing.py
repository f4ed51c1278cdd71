"""The addresses of a backend in the order in which a connection should try them.

The law: pure; times are seconds of a monotonic clock that the caller reads. Within one order the families take turns
(RFC 8305 section 4), so that a family that leads nowhere costs one attempt. From order to order the addresses of a
family take turns, so that all pods of a Service get their share. What did not answer is tried last for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice, zip_longest
from typing import Final, Generic, Protocol, TypeVar

SUSPECT_SECONDS: Final = 30.0
"""How long an address that did not answer is tried last."""

MOST: Final = 8
"""Addresses that one connection tries; of more, the connect timeout would not leave each its time."""


class Addressed(Protocol):
    """What a pool holds: something with an IP literal."""

    @property
    def host(self) -> str:
        """The address; IPv6 has colons."""
        ...


AddressT = TypeVar("AddressT", bound=Addressed)


class Pool(Generic[AddressT]):
    """The addresses that are known, and which of them failed last."""

    def __init__(self) -> None:
        self.addresses: tuple[AddressT, ...] = ()
        """As they were given, each once."""
        self._suspects: dict[AddressT, float] = {}
        self._turn = 0

    def replace(self, addresses: Iterable[AddressT]) -> None:
        """Hold these and no others; what is known of an address that stays is kept."""
        self.addresses = tuple(dict.fromkeys(addresses))
        self._suspects = {one: until for one, until in self._suspects.items() if one in self.addresses}

    def note_failure(self, address: AddressT, *, now: float) -> None:
        """An address did not answer."""
        if address in self.addresses:
            self._suspects[address] = now + SUSPECT_SECONDS

    def note_success(self, address: AddressT) -> None:
        """An address answered."""
        if self._suspects:
            self._suspects.pop(address, None)

    def order(self, *, now: float) -> tuple[AddressT, ...]:
        """What the next connection should try, best first; at most MOST."""
        if len(self.addresses) < 2:  # noqa: PLR2004  # nothing to choose
            return self.addresses
        self._suspects = {one: until for one, until in self._suspects.items() if until > now}
        good = [one for one in self.addresses if one not in self._suspects]
        # Of the suspects, the one that has waited longest first.
        bad = sorted(self._suspects, key=self._suspects.__getitem__)
        self._turn += 1
        return tuple(islice(chain(self._interleaved(good), bad), MOST))

    def _interleaved(self, addresses: Sequence[AddressT]) -> Iterable[AddressT]:
        # IPv6 first, as RFC 8305 section 4 and the default policy of RFC 6724 have it.
        families = [[one for one in addresses if (":" in one.host) is is_v6] for is_v6 in (True, False)]
        pairs = zip_longest(*(self._rotated(family) for family in families if family))
        return (one for one in chain.from_iterable(pairs) if one is not None)

    def _rotated(self, family: list[AddressT]) -> list[AddressT]:
        start = self._turn % len(family)
        return family[start:] + family[:start]
