"""Figures out of several measurements: medians with their spread, ratios, percentiles. Pure.

The law: a figure that was not measured is None, never zero.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of several rounds, and how far apart they were."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread | None:
    """None of no values."""
    if not values:
        return None
    return Spread(statistics.median(values), min(values), max(values))


def ratio(ours: Spread | None, peer: Spread | None) -> float | None:
    """The quotient of two medians: what stays comparable on a machine that is busy with other things."""
    if ours is None or peer is None or not peer.median:
        return None
    return ours.median / peer.median


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that `share` of all (0 to 1) do not exceed; None of no values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
