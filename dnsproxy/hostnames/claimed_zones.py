"""Claimed zones: the registrable zones of all hostnames that are claimed and allowed.

The law: a hostname counts while a claim to it is denied by no guard and no right, also while its target has no address,
so that a relay that is away for a minute takes no zone away. A new zone costs a look at the names judged since the last
look; a zone that vanishes is found by a count of all names. Pure; both are done in steps of some microseconds.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final

from dnsproxy.hostnames.registrable import outermost, zone_of
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.wildcards import reaches

MOST: Final = 2_000
"""Zones kept, four times as many as an install writes; sorting these takes less than a millisecond."""


class ClaimedZones:
    """The zones of one registry, which may change between two steps."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._zones: set[str] = set()
        self._seen = 0
        self.unjudged = 0
        """Hostnames at the last count that were not looked up yet, and are denied for that."""
        self.left_out = 0
        """Hostnames whose zones are beyond MOST."""

    def zones(self) -> tuple[str, ...]:
        """As of the last count or addition, sorted; none is inside another one."""
        return outermost(self._zones)

    def add_fresh(self) -> Generator[None, None, bool]:
        """Add the zones of the names judged since the last call; False if they are too many, and need a count."""
        judged = self._registry.outcomes.judged
        fresh = self._registry.outcomes.judged_since(self._seen)
        if fresh is None:
            return False
        self._seen = judged
        self.left_out += yield from self._add(fresh, self._zones)
        return True

    def count(self) -> Generator[None, None, None]:
        """Find all zones anew."""
        # Names that are judged from here on are fresh for the next addition.
        self._seen = self._registry.outcomes.judged
        zones: set[str] = set()
        self.left_out = yield from self._add(self._registry.store.names(), zones)
        self._zones = zones

    def _add(self, hostnames: Iterable[str], zones: set[str]) -> Generator[None, None, int]:
        left_out = 0
        for hostname in hostnames:
            zone = zone_of(hostname)
            # Most names are in a zone that is known already, which spares their verdict.
            if zone not in zones:
                if len(zones) >= MOST:
                    left_out += 1
                elif self._is_claimed(hostname):
                    zones.add(zone)
            yield
        return left_out

    def _is_claimed(self, hostname: str) -> bool:
        verdicts = (self._registry.verdict(hostname, reach) for reach in reaches(hostname))
        return any(one.winner is not None or one.waits or one.rival is not None for one in verdicts)
