"""The status of an agent: its counters, its plan and its problems, for the admin port.

The law: the agent alone writes it, anything may read it at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sidecar.kubernetes.follower_status import FollowerStatus
from wholeip.mappings.plan import Plan

APPLIED: Final = "applied"
FAILED: Final = "failed"

DURATION_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds."""


@dataclass(slots=True)
class Durations:
    """How long transactions took, as a histogram."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BOUNDS) + 1))
    """For each bound, the durations up to it and above the previous one; the last count has the longer ones."""
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        place = next((place for place, bound in enumerate(DURATION_BOUNDS) if seconds <= bound), len(DURATION_BOUNDS))
        self.counts[place] += 1
        self.total += seconds


@dataclass(slots=True)
class AgentStatus:
    """The state and counters of one agent."""

    node: str | None = None
    watches: Sequence[FollowerStatus] = ()
    services: int = 0
    """Services with our label, as of the last plan."""
    plan: Plan = field(default_factory=Plan)
    """The plan that the kernel has, when it is in step."""
    in_step: bool = False
    """Whether the kernel had the plan after the last comparison or write."""
    trouble: str = ""
    """Why the last attempt to update the kernel failed."""
    advice: tuple[str, ...] = ()
    """Settings of this node that stop packets, with what to change."""
    stopping: bool = False
    attempts: Counter[str] = field(default_factory=lambda: Counter({APPLIED: 0, FAILED: 0}))
    """Transactions by outcome."""
    durations: Durations = field(default_factory=Durations)
    repaired: int = 0
    """How often another program had changed the table and it was repaired."""
    flows_ended: int = 0
    """Flows ended because no rule allowed them, or because they were older than a mapping."""
    flow_failures: int = 0
    """Failed attempts to end flows."""
    applied_time: float | None = None
    """When the last transaction was applied, in seconds since the epoch."""

    @property
    def synced(self) -> bool:
        """Whether the whole cluster was read once: an unknown object then does not exist."""
        return bool(self.watches) and all(watch.synced for watch in self.watches)

    def why_not_ready(self) -> str:
        """Why not, in words; empty if the kernel has what the cluster is known to ask for."""
        if self.stopping:
            return "stopping"
        if not self.synced:
            waiting = [f"{watch.kind}: {watch.describe()}" for watch in self.watches if not watch.synced]
            return "; ".join(["the cluster is not known yet", *waiting])
        if self.trouble:
            return f"the kernel refuses the rules: {self.trouble}"
        return "" if self.in_step else "the kernel does not have the rules yet"

    def describe(self) -> str:
        """One line for /readyz."""
        if reason := self.why_not_ready():
            return reason
        away = [f"{watch.kind}: {watch.describe()}" for watch in self.watches if watch.error and not watch.absent]
        summary = f"{self.plan.mapping_count} mappings of {self.services} Services"
        return "; ".join([summary, *self.advice, *away])
