"""What one round measures of one relay, and what several rounds say together. Pure.

The law: a figure that a workload does not measure is None, never zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tests.bench.kit.clock import CpuTime
from tests.bench.kit.figures import Spread, spread_over


@dataclass(frozen=True, slots=True)
class Sample:
    """One round: how much was done in how long, and what it cost the relay."""

    amount: float
    """Requests, or GB, or connections."""
    seconds: float
    cpu: CpuTime | None = None
    """None where there is no relay."""
    p50_ms: float | None = None
    p99_ms: float | None = None
    longest_ms: float | None = None
    held_up: float | None = None
    """The share of the requests that the machine held up; the times are those of the others."""
    memory_kib: float | None = None
    """Resident memory for each connection."""
    errors: int = 0

    @property
    def rate(self) -> float:
        """Of the amount, in a second."""
        return self.amount / self.seconds

    @property
    def cpu_us(self) -> float | None:
        """Microseconds of processor time for each of the amount."""
        return None if self.cpu is None else self.cpu.total / self.amount * 1e6

    @property
    def user_us(self) -> float | None:
        """The part of it outside the kernel."""
        return None if self.cpu is None else self.cpu.user / self.amount * 1e6

    @property
    def busy(self) -> float | None:
        """The share of the time that the relay ran: far below 1, and the load was what held it up."""
        return None if self.cpu is None else self.cpu.total / self.seconds

    @property
    def queued(self) -> float | None:
        """The share of the time that the relay was ready to run, and others ran."""
        return None if self.cpu is None else self.cpu.queued / self.seconds


@dataclass(frozen=True, slots=True)
class Summary:
    """Several rounds of one relay."""

    rate: Spread | None
    cpu_us: Spread | None
    user_us: Spread | None
    busy: Spread | None
    queued: Spread | None
    p50_ms: Spread | None
    p99_ms: Spread | None
    longest_ms: Spread | None
    held_up: Spread | None
    memory_kib: Spread | None
    errors: int


def summarise_samples(samples: Sequence[Sample]) -> Summary:
    """Medians over rounds, and errors of all of them."""
    over = partial(spread_over, samples)
    return Summary(
        rate=over(lambda sample: sample.rate),
        cpu_us=over(lambda sample: sample.cpu_us),
        user_us=over(lambda sample: sample.user_us),
        busy=over(lambda sample: sample.busy),
        queued=over(lambda sample: sample.queued),
        p50_ms=over(lambda sample: sample.p50_ms),
        p99_ms=over(lambda sample: sample.p99_ms),
        longest_ms=over(lambda sample: sample.longest_ms),
        held_up=over(lambda sample: sample.held_up),
        memory_kib=over(lambda sample: sample.memory_kib),
        errors=sum(sample.errors for sample in samples),
    )
