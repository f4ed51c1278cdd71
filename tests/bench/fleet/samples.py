"""What is found about one primary in one round: figures with names. Pure.

The law: a figure is seconds, octets or counts as they were measured; its unit in the table is the report's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.dns.prober import Probe
from tests.bench.fleet import report
from tests.bench.fleet.crowd import Taken
from tests.bench.fleet.one_transfer import Transferred
from tests.bench.kit.clock import CpuTime
from tests.bench.kit.figures import percentile

_NONE: Final = CpuTime()

Figures = dict[tuple[str, str], float]
"""By workload and name."""


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """What the primary used and answered while something went on."""

    seconds: float
    cpu: CpuTime
    probe: Probe
    secondaries: CpuTime = _NONE
    """Of the process that is all secondaries: where it fills its processor, it is the limit."""


def rollout_figures(begun: float, taken: Taken, meanwhile: Meanwhile, *, memory: tuple[float, float]) -> Figures:
    """All secondaries at once; `memory` in MiB: before, and when all have it."""
    count = len({event.address for event in taken.events})
    times = [event.at - begun for event in taken.events]
    figures = {
        report.ALL_HAVE: max(times, default=None),
        report.HALF_HAVE: percentile(times, 0.5),
        report.CPU: _share(meanwhile.cpu.total * 1000, taken.counts.get("axfr", count)),
        report.REFUSED: float(sum(taken.counts.get(why, 0) for why in ("reset", "closed", "connect", "refused"))),
        report.BEFORE: memory[0],
        report.AFTER: memory[1],
    }
    return _named(report.ROLLOUT, {**figures, **_meanwhile(meanwhile)})


def one_figures(axfr: Sequence[Transferred], ixfr: Sequence[Transferred], meanwhile: Meanwhile) -> Figures:
    """Single transfers, with the answers beside them."""
    figures = {
        report.AXFR: percentile([one.seconds * 1000 for one in axfr], 0.5),
        report.AXFR_WORST: max((one.seconds * 1000 for one in axfr), default=None),
        report.AXFR_SIZE: percentile([one.octets / 1e6 for one in axfr], 0.5),
        report.IXFR: percentile([one.seconds * 1000 for one in ixfr], 0.5),
        report.IXFR_WORST: max((one.seconds * 1000 for one in ixfr), default=None),
        report.IXFR_SIZE: percentile([float(one.octets) for one in ixfr], 0.5),
    }
    return _named(report.ONE, {**figures, **_meanwhile(meanwhile)})


def change_figures(times: Sequence[float], fetched: int, meanwhile: Meanwhile) -> Figures:
    """Single changes, each at all secondaries; `times` of all of them, `fetched`: how many transfers that were."""
    figures = {
        report.HAS_P50: _ms(percentile(times, 0.5)),
        report.HAS_P99: _ms(percentile(times, 0.99)),
        report.CPU: _share(meanwhile.cpu.total * 1000, fetched),
    }
    return _named(report.CHANGE, {**figures, **_meanwhile(meanwhile)})


def changes_figures(
    lags: Sequence[float], *, done: float, versions: int, fetched: float, settled: float, meanwhile: Meanwhile
) -> Figures:
    """Many changes a second; `done` changes a second, `fetched` transfers a second, `settled` seconds."""
    figures = {
        report.CHANGES_DONE: done,
        report.VERSIONS: versions / meanwhile.seconds,
        report.FETCHED: fetched,
        report.HAS_P50: _ms(percentile(lags, 0.5)),
        report.HAS_P99: _ms(percentile(lags, 0.99)),
        report.SETTLED: _ms(settled),
        report.BUSY: meanwhile.cpu.total / meanwhile.seconds * 100,
    }
    return _named(report.CHANGES, {**figures, **_meanwhile(meanwhile)})


def _meanwhile(meanwhile: Meanwhile) -> dict[str, float | None]:
    return {
        report.ANSWERS_P99: meanwhile.probe.p99,
        report.ANSWERS_WORST: meanwhile.probe.worst,
        report.ANSWERS_LOST: float(meanwhile.probe.lost),
        report.LOAD: meanwhile.secondaries.total / meanwhile.seconds * 100,
        report.QUEUED: meanwhile.cpu.queued / meanwhile.seconds * 100,
    }


def _named(workload: str, figures: dict[str, float | None]) -> Figures:
    return {(workload, what): value for what, value in figures.items() if value is not None}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _share(total: float, count: int) -> float | None:
    return total / count if count else None
