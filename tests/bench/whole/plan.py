"""How many rounds each benchmark gets, so that all of them end in time. Pure.

The law: no benchmark is left with fewer rounds than another while there is time for one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a benchmark on two quiet processors."""

    fixed: float
    """What it takes without any round: its servers start, a store is filled."""
    round: float
    least: int = 1
    most: int = 9

    def seconds(self, rounds: int) -> float:
        """With so many rounds."""
        return self.fixed + self.round * rounds


def choose_rounds(costs: Mapping[str, Cost], seconds: float) -> dict[str, int]:
    """Rounds by benchmark, together within so many seconds; the least of each, even if there is no time for them."""
    rounds = {name: cost.least for name, cost in costs.items()}
    left = seconds - sum(cost.seconds(cost.least) for cost in costs.values())
    while fitting := [name for name, cost in costs.items() if rounds[name] < cost.most and cost.round <= left]:
        name = min(fitting, key=lambda one: rounds[one])
        rounds[name] += 1
        left -= costs[name].round
    return rounds


def slowness(planned: float, taken: float) -> float:
    """How much longer than planned it all takes: other work of the machine, or slower processors. At least 1."""
    return max(1.0, taken / planned) if planned else 1.0
