"""Whether a figure that was sampled again and again stayed flat. Pure.

The law: the first quarter is warm-up and counts for nothing; the median of the last quarter may exceed that of the
second by the allowance and no more. What falls is flat: only growth ends a server that runs for a year.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FEWEST: Final = 8
"""Samples: two a quarter."""


class TooFew(Exception):
    """There are not enough samples for a verdict."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much growth is noise: the larger of the two."""

    share: float = 0.0
    """Of the median of the second quarter."""
    least: float = 0.0
    """In the figure's own unit."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Medians in the figure's own unit."""

    early: float
    """Of the second quarter."""
    late: float
    """Of the last quarter."""
    most: float
    """What `late` may be at most."""

    @property
    def flat(self) -> bool:
        return self.late <= self.most


def judge(values: Sequence[float], allowance: Allowance) -> Verdict:
    """The verdict on samples in the order in which they were taken, evenly spaced. Raises TooFew."""
    count = len(values)
    if count < FEWEST:
        raise TooFew(f"{count} samples; {FEWEST} make a verdict")
    early = statistics.median(values[count // 4 : count // 2])
    late = statistics.median(values[-(count // 4) :])
    return Verdict(early, late, early + max(allowance.share * abs(early), allowance.least))
