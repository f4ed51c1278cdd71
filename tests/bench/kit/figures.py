"""Figures out of several measurements: medians with their spread, ratios, percentiles. Pure.

The law: a figure that was not measured is None, never zero.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

Sample = TypeVar("Sample")


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


def spread_over(samples: Sequence[Sample], figure: Callable[[Sample], float | None]) -> Spread | None:
    """The spread of one figure over several samples, those without the figure aside."""
    return spread([value for value in map(figure, samples) if value is not None])


def format_spread(value: Spread | None, form: str, factor: float = 1) -> str:
    """The median as text; empty for a figure that was not measured."""
    return format(value.median * factor, form) if value else ""


def format_reached(reached: bool | None) -> str:
    """Whether a goal was reached; a question mark is for a figure that was not measured."""
    return {None: "?", True: "yes", False: "NO"}[reached]


def rows_to_json(rows: Sequence[Any], **head: Any) -> dict[str, Any]:
    """The content of a file: how it was measured, and the rows, which are dataclasses, with all their figures."""
    return {**head, "rows": [asdict(row) for row in rows]}
