"""The status of an agent: its counters, its plan and its problems, for the admin port.

The law: the agent alone writes it, anything may read it at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sidecar.kubernetes.follower_status import Status
from wholeip.mappings.plan import Plan

APPLIED: Final = "applied"
FAILED: Final = "failed"

DURATION_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds."""


@dataclass(slots=True)
class Durations:
    """How long transactions took, as a histogram."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BOUNDS) + 1))
    """For each bound, how many took no longer than it and longer than the one before; at last, the others."""
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Take one in."""
        place = next((place for place, bound in enumerate(DURATION_BOUNDS) if seconds <= bound), len(DURATION_BOUNDS))
        self.counts[place] += 1
        self.total += seconds


@dataclass(slots=True)
class AgentStatus:
    """One agent's state and counters."""

    node: str | None = None
    watches: Sequence[Status] = ()
    services: int = 0
    """With our label, as of the last plan."""
    plan: Plan = field(default_factory=Plan)
    """What the kernel has, once it is in step."""
    in_step: bool = False
    """Whether the kernel had the plan when we last looked or wrote."""
    trouble: str = ""
    """Why the last attempt to bring the kernel up to date failed."""
    advice: tuple[str, ...] = ()
    """What about this node keeps packets from getting through."""
    stopping: bool = False
    attempts: Counter[str] = field(default_factory=lambda: Counter({APPLIED: 0, FAILED: 0}))
    """Transactions by outcome."""
    durations: Durations = field(default_factory=Durations)
    repaired: int = 0
    """How often somebody else had changed the table, and it was put right."""
    flows_ended: int = 0
    """Because no rule allowed them any more."""
    flow_failures: int = 0
    """How often that could not be done at once."""
    applied_time: float | None = None
    """Of the last transaction, in seconds since the epoch."""

    @property
    def synced(self) -> bool:
        """Whether the whole cluster was read once, so that what is not known is not there."""
        return bool(self.watches) and all(watch.synced for watch in self.watches)

    def why_not_ready(self) -> str:
        """In words; empty where the kernel has what the cluster wants, as far as it is known."""
        if self.stopping:
            return "stopping"
        if not self.synced:
            waiting = [f"{watch.kind}: {watch.describe()}" for watch in self.watches if not watch.synced]
            return "; ".join(["the cluster is not known yet", *waiting])
        if self.trouble:
            return f"the kernel does not take the rules: {self.trouble}"
        return "" if self.in_step else "the kernel does not have the rules yet"

    def describe(self) -> str:
        """One line for /readyz."""
        if reason := self.why_not_ready():
            return reason
        away = [f"{watch.kind}: {watch.describe()}" for watch in self.watches if watch.error and not watch.absent]
        told = f"{len(self.plan.mappings)} mappings of {self.services} Services"
        return "; ".join([told, *self.advice, *away])
