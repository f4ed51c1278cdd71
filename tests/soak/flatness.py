"""Whether a repeatedly sampled figure stayed flat. Pure.

The law: the first quarter is warm-up and does not count; the median of the last quarter may exceed that of the second
by the allowance and no more. A falling figure is flat: only growth ends a server that runs for a year.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FEWEST: Final = 8
"""Minimum number of samples: two per quarter."""


class TooFew(Exception):
    """There are not enough samples for a verdict."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The growth that counts as noise: the larger of the two."""

    share: float = 0.0
    """A share of the median of the second quarter."""
    least: float = 0.0
    """An absolute value, in the figure's own unit."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Medians in the figure's own unit."""

    early: float
    """The median of the second quarter."""
    late: float
    """The median of the last quarter."""
    most: float
    """The maximum for `late`."""

    @property
    def flat(self) -> bool:
        return self.late <= self.most


def judge(values: Sequence[float], allowance: Allowance) -> Verdict:
    """The verdict on evenly spaced samples in chronological order. Raises TooFew."""
    count = len(values)
    if count < FEWEST:
        raise TooFew(f"{count} samples; a verdict needs {FEWEST}")
    early = statistics.median(values[count // 4 : count // 2])
    late = statistics.median(values[-(count // 4) :])
    return Verdict(early, late, early + max(allowance.share * abs(early), allowance.least))
