"""What is to be reached against each server. Pure.

The law: a goal is a bound on the ratio of our figure to a server's in the same run, never on a figure of one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tests.bench.dns import peers

LATENCY_MS: Final = 5.0
"""The p99 of table answers stays under this, whatever else is going on."""

Measure = Literal["q/s", "CPU", "p50"]


@dataclass(frozen=True, slots=True)
class Goal:
    """Ours divided by theirs: at least this in queries a second, or at most this in time or processor time."""

    measure: Measure
    bound: float
    of: str = ""
    """What ours is divided by, where it is not the server of the row."""

    def __str__(self) -> str:
        sign = ">=" if self.measure == "q/s" else "<="
        return f"{self.measure} {sign} {self.bound:g} x{self.of and ' ' + self.of}"

    def is_reached(self, ratio: float) -> bool:
        return ratio >= self.bound if self.measure == "q/s" else ratio <= self.bound


_TABLE: Final = {
    peers.NSD: Goal("q/s", 1.0),
    peers.DNSMASQ: Goal("q/s", 1.3),
    peers.UNBOUND: Goal("q/s", 1.3),
    peers.COREDNS_HOSTS: Goal("q/s", 1.8),
    peers.COREDNS_FILE: Goal("q/s", 1.8),
    peers.COREDNS_REWRITE: Goal("q/s", 25.0),
}
_FORWARD: Final = {peers.DNSMASQ: Goal("CPU", 0.7), peers.COREDNS_FORWARD: Goal("CPU", 0.5)}
# Load and servers share the processors, so every q/s has the processor time of the load in it.
_TWO: Final = {
    peers.NSD: Goal("CPU", 1.2),
    peers.UNBOUND: Goal("CPU", 1.0),
    peers.COREDNS_HOSTS: Goal("CPU", 0.5),
}
# Only what a pod waits for: at a low rate, processor time is mostly that of waking up.
_REST: Final = {
    **dict.fromkeys((peers.NSD, peers.DNSMASQ, peers.UNBOUND), Goal("p50", 1.2)),
    peers.COREDNS_HOSTS: Goal("p50", 1.0),
}
_BY_WORKLOAD: Final = {"forward": _FORWARD, "two": _TWO, "rest-1000": _REST, "rest-100": _REST}

BESIDE_TABLE: Final = {
    # Ten times the names cost us no more than this.
    "100k": Goal("q/s", 0.95, of="table"),
    # Nor does somebody who sees every query.
    "tap": Goal("q/s", 0.9, of="table"),
}
"""What ours is compared with its own row of `table` for."""


def goal_for(workload: str, server: str) -> Goal | None:
    """The goal against a server under a workload; None where there is none."""
    return _BY_WORKLOAD.get(workload, _TABLE).get(server)
