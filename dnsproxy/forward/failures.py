"""Failures that are remembered for a moment, so that a name which nobody answers is not asked for again and again.

The law: what is remembered is a query octet for octet (its ID aside), for REMEMBER seconds (RFC 9520 section 3.2 wants
at least one), and of no more than MOST queries of LARGEST octets; a new failure is forgotten rather than an old one
evicted, because random names would evict everything.
"""

from __future__ import annotations

from typing import Final

REMEMBER: Final = 1.0
"""Seconds; no longer, so that an upstream that is back is asked at once."""
MOST: Final = 10_000
LARGEST: Final = 4096
"""Octets; a client over TCP may send more, and memory is bounded."""


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
