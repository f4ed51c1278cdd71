"""Admission: how many queries may wait for an upstream, in all and for one client.

The law: a count, never a queue. What is not admitted is refused at once, which no cache keeps; a client that gathers
replies for one pulse (DNSBomb, CVE-2024-33655) gathers no more than its share.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

REMEMBER: Final = 1.0
"""Seconds; no longer, so that an upstream that is back is asked at once."""
MOST: Final = 10_000
LARGEST: Final = 4096
"""Octets; a client over TCP may send more, and memory is bounded."""


class Admission:
    """Counts the queries that wait."""

    def __init__(self, *, total: int, per_client: int) -> None:
        self._total = total
        self._per_client = per_client
        self._waiting = 0
        self._clients: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return self._waiting

    def admit(self, client: Hashable) -> bool:
        """Count one more query of a client, unless that is too much."""
        clients = self._clients
        waiting = clients.get(client, 0)
        if waiting >= self._per_client or self._waiting >= self._total:
            return False
        clients[client] = waiting + 1
        self._waiting += 1
        return True

    def release(self, client: Hashable) -> None:
        """One query of an admitted client no longer waits."""
        self._waiting -= 1
        left = self._clients[client] - 1
        if left:
            self._clients[client] = left
        else:
            del self._clients[client]


class Failures:
    """Queries that no upstream answered lately, and until when that counts."""

    def __init__(self) -> None:
        self.until: dict[bytes, float] = {}
        """The oldest first; nearly always empty."""

    def add(self, key: bytes, now: float) -> None:
        """Remember a failure."""
        if len(self.until) < MOST and len(key) <= LARGEST:
            # Taken out first, so that the order stays that of the times.
            self.until.pop(key, None)
            self.until[key] = now + REMEMBER

    def holds(self, key: bytes, now: float) -> bool:
        """Whether this very query failed a moment ago."""
        return self.until.get(key, 0.0) > now

    def forget_old(self, now: float) -> None:
        """Let go of what no longer counts."""
        old = []
        for key, until in self.until.items():
            if until > now:
                break
            old.append(key)
        for key in old:
            del self.until[key]
