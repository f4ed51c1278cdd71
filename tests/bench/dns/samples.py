"""What one round measures of one server, and what several rounds say together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tests.bench.dns.dnsperf import Report
from tests.bench.dns.prober import Probe
from tests.bench.kit.clock import CpuTime
from tests.bench.kit.figures import Spread, spread_over


@dataclass(frozen=True, slots=True)
class AtRest:
    """A round without a load: the probe's queries were all there was."""

    completed: int
    seconds: float
    qps: None = None
    average_ms: None = None
    lost: int = 0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One round: the load's report, the processor time it cost the server, and a probe at a low rate after it."""

    report: Report | AtRest
    cpu: CpuTime
    probe: Probe

    @property
    def cpu_us(self) -> float:
        """Microseconds of processor time per answered query."""
        return self.cpu.total / self.report.completed * 1e6 if self.report.completed else 0.0

    @property
    def busy(self) -> float:
        """The share of the time that the server ran: far below 1, and the load was what held it up."""
        return self.cpu.total / self.report.seconds if self.report.seconds else 0.0

    @property
    def queued(self) -> float:
        """The share of the time that the server was ready to run, and others ran."""
        return self.cpu.queued / self.report.seconds if self.report.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Several rounds of one server."""

    qps: Spread | None
    cpu_us: Spread | None
    user_us: Spread | None
    busy: Spread | None
    queued: Spread | None
    average_ms: Spread | None
    p50_ms: Spread | None
    p99_ms: Spread | None
    worst_ms: Spread | None
    completed: int
    lost: int
    errors: int


def summarise_samples(samples: Sequence[Sample]) -> Summary:
    """Medians over rounds, and counts over all of them."""
    over = partial(spread_over, samples)
    return Summary(
        qps=over(lambda sample: sample.report.qps),
        cpu_us=over(lambda sample: sample.cpu_us),
        user_us=over(lambda sample: sample.cpu_us * _share(sample.cpu)),
        busy=over(lambda sample: sample.busy),
        queued=over(lambda sample: sample.queued),
        average_ms=over(lambda sample: sample.report.average_ms),
        p50_ms=over(lambda sample: sample.probe.p50),
        p99_ms=over(lambda sample: sample.probe.p99),
        worst_ms=over(lambda sample: sample.probe.worst),
        completed=sum(sample.report.completed for sample in samples),
        lost=sum(sample.report.lost + sample.probe.lost for sample in samples),
        errors=sum(sample.report.errors + sample.probe.errors for sample in samples),
    )


def _share(cpu: CpuTime) -> float:
    return cpu.user / cpu.total if cpu.total else 0.0
