"""Write back-off: how long to wait before writing again what another writer undid.

The law: a few repairs are made at once, as after an upgrade by the owner. Against a writer that keeps undoing them,
repairs become rarer, down to one in 5 minutes. A minute in place resets the back-off. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FREE: Final = 3
"""Losses in a row that are repaired at once."""
QUIET: Final = 60.0
"""Seconds in place that reset the backoff; so a longer conflict sees at most one write in this time."""
FIRST: Final = 5.0
"""Initial wait in seconds; doubles up to LONGEST."""
LONGEST: Final = 300.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """The history of what was written; times are seconds of one clock."""

    losses: int = 0
    """How often in a row it was undone soon after a write."""
    stands_since: float | None = None
    """None while it is not in place."""


def stood(backoff: Backoff, now: float) -> Backoff:
    """It was seen in place, or was just written."""
    if backoff.stands_since is None:
        return Backoff(backoff.losses, now)
    return Backoff(0, backoff.stands_since) if now - backoff.stands_since >= QUIET else backoff


def lost(backoff: Backoff, now: float) -> Backoff:
    """It was seen to be missing or changed; counts once for each time in place."""
    if backoff.stands_since is None:
        return backoff
    return Backoff(backoff.losses + 1 if now - backoff.stands_since < QUIET else 0)


def wait_of(backoff: Backoff) -> float:
    """Seconds to wait before the next write."""
    beyond = backoff.losses - FREE
    # The bounded exponent keeps the power within a float.
    return min(LONGEST, FIRST * 2.0 ** min(beyond - 1, 16)) if beyond > 0 else 0.0
