"""The serials of a primary that shares its zone with others: a Lease has the highest one that may be in use.

The law: pure. Whoever takes the Lease begins above its ceiling, and writes a higher ceiling with the same request; so
no serial is given twice, whatever replica gave it, and whatever their clocks say. Who does not hold the Lease gives
none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dnsproxy.primary.serials import clock_serial
from dnsproxy.zone.serials import MODULUS, following, is_newer, newest
from sidecar.kubernetes.leases.leading import SeenLease
from sidecar.values.endpoints import Endpoint, parse_endpoint

CEILING: Final = "switchback.dev/rpz-ceiling"
"""No serial in use is higher."""
ADDRESS: Final = "switchback.dev/rpz-address"
"""Where the holder answers transfers."""
BLOCK: Final = 1 << 16
"""Serials that one write reserves: 100 changes a second for ten minutes without the API server."""
_DIGITS: Final = 10


class Term:
    """What one replica may give out; `address`: where it answers; `now`: seconds since the epoch."""

    def __init__(self, identity: str, address: Endpoint, *, now: Callable[[], float]) -> None:
        self._identity = identity
        self._address = address
        self._now = now
        self._first: int | None = None
        self._used = 0

    def annotate(self, seen: SeenLease) -> Mapping[str, str]:
        """The annotations to write over a Lease that was seen: the next ceiling, and the own address."""
        ceiling = parse_ceiling(seen.annotations)
        if seen.holder != self._identity or ceiling is None or self._first is None:
            # A new term: what was given out before may be anything up to the ceiling.
            before = clock_serial(self._now()) if ceiling is None else ceiling
            self._first, self._used = following(before), 0
            ceiling = following(before, BLOCK)
        elif self._used and not is_newer(ceiling, following(self._used, BLOCK // 2)):
            ceiling = following(ceiling, BLOCK)
        return {CEILING: str(ceiling), ADDRESS: str(self._address)}

    def next(self, after: int, seen: SeenLease) -> int | None:
        """The serial after another one; None if the Lease as it was seen allows none."""
        ceiling = parse_ceiling(seen.annotations)
        if self._first is None or ceiling is None or seen.holder != self._identity:
            return None
        serial = newest(following(after), self._first) if after else self._first
        if is_newer(serial, ceiling):
            return None
        self._used = serial
        return serial


def parse_ceiling(annotations: Mapping[str, str]) -> int | None:
    """The ceiling of a Lease; None if it has none, or what is no serial."""
    text = annotations.get(CEILING, "")
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and 0 < int(text) < MODULUS):
        return None
    return int(text)


def holder_address(seen: SeenLease) -> Endpoint | None:
    """Where the holder answers transfers; None if there is no holder, or no address."""
    if not seen.holder:
        return None
    try:
        found = parse_endpoint(seen.annotations.get(ADDRESS, ""))
    except ValueError:
        return None
    return found if found.port else None
