"""Fighting: how long to wait before what somebody undid is written again.

The law: a few repairs are made at once, as after an owner's upgrade; who keeps undoing them is answered more and more
rarely, up to once in some minutes, and a minute in which the stanza stood lets all be forgotten. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FREE: Final = 3
"""Losses in a row that are made good at once."""
QUIET: Final = 60.0
"""Seconds: what stood for so long was no fight. So nobody is fought faster than that for long."""
FIRST: Final = 5.0
"""Seconds of the first wait; each one after it is twice as long, up to"""
LONGEST: Final = 300.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """What became of the stanza so far; times are seconds of one clock."""

    losses: int = 0
    """How often in a row it went again soon."""
    stands_since: float | None = None
    """None while it does not stand."""


def stood(backoff: Backoff, now: float) -> Backoff:
    """The stanza is seen, or was just written."""
    if backoff.stands_since is None:
        return Backoff(backoff.losses, now)
    return Backoff(0, backoff.stands_since) if now - backoff.stands_since >= QUIET else backoff


def lost(backoff: Backoff, now: float) -> Backoff:
    """It is seen to be gone or changed; once for each time that it stood."""
    if backoff.stands_since is None:
        return backoff
    return Backoff(backoff.losses + 1 if now - backoff.stands_since < QUIET else 0)


def wait_of(backoff: Backoff) -> float:
    """Seconds to wait before it is written again."""
    beyond = backoff.losses - FREE
    # A power of two that no float holds is never asked for.
    return min(LONGEST, FIRST * 2.0 ** min(beyond - 1, 16)) if beyond > 0 else 0.0
