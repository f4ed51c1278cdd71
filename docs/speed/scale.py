"""An axis that begins at zero, and figures as text. Pure.

The law: the axis ends at a round number that no figure exceeds, so that the lengths of bars compare as the figures do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_TICKS: Final = 4
_DIGITS: Final = 3
_LARGE: Final = 2.0
_THOUSAND: Final = 1e3
_LONG: Final = 1e4
_MILLION: Final = 1e6
TIMES: Final = "\u00d7"


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from zero to `end`."""

    end: float
    ticks: Sequence[float]
    """Zero and the end among them."""

    def share(self, value: float) -> float:
        """The place of a value, 0 to 1."""
        return value / self.end


def make_scale(highest: float) -> Scale:
    """The shortest axis for values up to this one."""
    if highest <= 0 or not math.isfinite(highest):
        return Scale(1.0, (0.0, 1.0))
    size = 10.0 ** math.floor(math.log10(highest / _MOST_TICKS))
    # Tolerance: 0.3 / 0.1 is a little less than 3.
    step = next(size * one for one in _STEPS if math.ceil(highest / (size * one) - 1e-9) <= _MOST_TICKS)
    count = max(1, math.ceil(highest / step - 1e-9))
    return Scale(step * count, [step * number for number in range(count + 1)])


def format_value(value: float) -> str:
    """Three digits that count: 1.23M, 84,200, 5.06, 0.131."""
    if not value:
        return "0"
    if value >= _MILLION:
        return f"{format_value(value / _MILLION)}M"
    digits = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    return f"{rounded:,.{max(0, digits)}f}"


def format_tick(value: float) -> str:
    """The same without zeros at the end, and shorter: 25k."""
    if _LONG <= value < _MILLION:
        return f"{format_tick(value / _THOUSAND)}k"
    if value >= _MILLION:
        return f"{format_tick(value / _MILLION)}M"
    text = format_value(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_ratio(ratio: float) -> str:
    """Two digits behind the point of a small one, two digits of a large one: 1.06, 2.9, 110."""
    return f"{ratio:.2f}" if ratio < _LARGE else format_tick(float(f"{ratio:.2g}"))


def format_times(ratio: float) -> str:
    """With the sign of a product behind it."""
    return f"{format_ratio(ratio)} {TIMES}"
