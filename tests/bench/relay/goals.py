"""What is to be reached against each relay. Pure.

The law: a goal is a bound on the ratio of our figure to a relay's in the same run, never on a figure of one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tests.bench.relay import peers
from tests.bench.relay.workloads import Kind

Measure = Literal["rate", "CPU", "memory", "p99"]
"""p99: what a relay adds to a request without one, at the 99th percentile."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Ours divided by theirs: at least this in rate, at most this in what it costs."""

    measure: Measure
    bound: float

    def __str__(self) -> str:
        return f"{self.measure} {'>=' if self.measure == 'rate' else '<='} {self.bound:g} x"

    def is_reached(self, ratio: float) -> bool:
        return ratio >= self.bound if self.measure == "rate" else ratio <= self.bound


GOALS: Final = {
    (Kind.BULK, peers.HAPROXY): (Goal("CPU", 0.5), Goal("rate", 1.0)),
    (Kind.BULK, peers.HAPROXY_SPLICE): (Goal("CPU", 0.65), Goal("rate", 1.0)),
    (Kind.REQUESTS, peers.HAPROXY): (Goal("CPU", 1.0),),
    (Kind.REQUESTS, peers.NGINX): (Goal("CPU", 1.1),),
    (Kind.REQUESTS, peers.GO): (Goal("CPU", 0.85),),
    (Kind.LATENCY, peers.HAPROXY): (Goal("p99", 1.0),),
    (Kind.IDLE, peers.HAPROXY): (Goal("memory", 2.0),),
}


def goals_for(kind: Kind, relay: str) -> tuple[Goal, ...]:
    """The goals against a relay under workloads of a kind; none against the others."""
    return GOALS.get((kind, relay), ())
