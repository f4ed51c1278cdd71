"""Admission: which queries may go to an upstream. Limits in total and per client, and a short memory of failures.

The law: counts, never a queue. A query over a limit gets REFUSED at once, which no cache keeps; a client that collects
replies for one pulse (DNSBomb, CVE-2024-33655) collects no more than its share. A failure is remembered for a query
octet for octet (without its ID), for REMEMBER seconds (RFC 9520 section 3.2 requires at least one), and for at most
MOST queries of LARGEST octets. When the memory is full, the new failure is not stored: evicting an old one would let
random names evict everything.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

REMEMBER: Final = 1.0
"""Seconds; not longer, so that a recovered upstream is asked at once."""
MOST: Final = 10_000
LARGEST: Final = 4096
"""Octets; a client over TCP may send more, but memory is bounded."""


class Admission:
    """Counts the queries that wait for an upstream."""

    def __init__(self, *, total: int, per_client: int) -> None:
        self._total = total
        self._per_client = per_client
        self._waiting = 0
        self._clients: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return self._waiting

    def admit(self, client: Hashable) -> bool:
        """Count one more query of a client; False if a limit is reached."""
        clients = self._clients
        waiting = clients.get(client, 0)
        if waiting >= self._per_client or self._waiting >= self._total:
            return False
        clients[client] = waiting + 1
        self._waiting += 1
        return True

    def release(self, client: Hashable) -> None:
        """Count one query of an admitted client less."""
        self._waiting -= 1
        left = self._clients[client] - 1
        if left:
            self._clients[client] = left
        else:
            del self._clients[client]


class Failures:
    """Queries that no upstream answered recently, and until when each counts."""

    def __init__(self) -> None:
        self.until: dict[bytes, float] = {}
        """Oldest first; nearly always empty."""

    def add(self, key: bytes, now: float) -> None:
        """Remember a failure."""
        if len(self.until) < MOST and len(key) <= LARGEST:
            # Removed first, so that the dict stays in the order of the times.
            self.until.pop(key, None)
            self.until[key] = now + REMEMBER

    def holds(self, key: bytes, now: float) -> bool:
        """Whether this very query failed within the last REMEMBER seconds."""
        return self.until.get(key, 0.0) > now

    def forget_old(self, now: float) -> None:
        """Remove the failures that no longer count."""
        old = []
        for key, until in self.until.items():
            if until > now:
                break
            old.append(key)
        for key in old:
            del self.until[key]
