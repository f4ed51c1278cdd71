"""The table at the end, and the same as JSON. Pure.

The law: a row a relay and workload, the goals against that relay beside the ratios that they are about; what was not
measured says why in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.bench.kit.figures import Spread, format_reached, format_spread, ratio
from tests.bench.kit.rounds import Measured
from tests.bench.relay.goals import Goal, goals_for
from tests.bench.relay.peers import DIRECT, OURS
from tests.bench.relay.samples import Sample, Summary, summarise_samples
from tests.bench.relay.workloads import Kind, Workload
from tests.kit.grid import format_grid

HEAD: Final = (
    *(
        "workload",
        "relay",
        "rate",
        "(min-max)",
        "CPU",
        "user",
        "busy",
        "queued",
        "p50 ms",
        "p99",
        "max",
        "held up",
        "KiB",
        "errors",
    ),
    *("ours/its rate", "CPU", "memory", "added p99", "goal", "reached"),
)
_WORDS: Final = (0, 1, 18, 19)

NOTE: Final = """\
Figures and ratios are medians over rounds. rate: MB/s, or requests a second. CPU: the relay's processor time, in
milliseconds per GB or microseconds per request. busy: the share of one processor that it used; well below 100 %, the
load held it up, and CPU tells more than the rate. queued: the share of the time that it was ready to run while others
had the processor, which is noise. p50, p99: of a request; under `latency` what the relay added to a request without
one. max: the longest of a round; held up: the share of requests that waited for a processor on their way (under
`latency`, where those are left out of the times). KiB: resident memory per idle connection.
ours/its added p99: of what both add to a request without a relay.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One relay under one workload."""

    workload: str
    relay: str
    kind: Kind
    summary: Summary | None = None
    added_p50_ms: float | None = None
    added_p99_ms: float | None = None
    rate_ratio: float | None = None
    cpu_ratio: float | None = None
    memory_ratio: float | None = None
    p99_ratio: float | None = None
    """Of what the relays add to a request without one."""
    goals: Sequence[str] = ()
    reached: Sequence[bool | None] = field(default=())
    fault: str = ""


def make_rows(workloads: Sequence[Workload], measured: Measured[Sample], *, ours: str = OURS) -> list[Row]:
    """All rows, in the order in which they were measured, compared with the relay that counts as ours."""
    kinds = {workload.name: workload.kind for workload in workloads}
    summaries = {key: summarise_samples(samples) for key, samples in measured.samples.items() if samples}
    rows = []
    for workload, relay in measured.samples:
        its, direct = summaries.get((workload, ours)), summaries.get((workload, DIRECT))
        fault = measured.faults.get((workload, relay), "")
        summary = summaries.get((workload, relay))
        rows.append(_make_row(workload, relay, kinds[workload], summary, None if relay == ours else its, direct, fault))
    return rows


def _make_row(
    workload: str,
    relay: str,
    kind: Kind,
    summary: Summary | None,
    ours: Summary | None,
    direct: Summary | None,
    fault: str,
) -> Row:
    if summary is None:
        return Row(workload, relay, kind, fault=fault or "not measured")
    compared = None if kind is Kind.LATENCY else ours
    rate, cpu, memory = _ratios(compared, summary)
    added_p99 = _added(summary.p99_ms, direct.p99_ms if direct else None)
    p99 = _added_ratio(_added(ours.p99_ms, direct.p99_ms) if ours and direct else None, added_p99)
    goals = goals_for(kind, relay)
    figures = {"rate": rate, "CPU": cpu, "memory": memory, "p99": p99}
    return Row(
        workload,
        relay,
        kind,
        summary,
        added_p50_ms=_added(summary.p50_ms, direct.p50_ms if direct else None),
        added_p99_ms=added_p99,
        rate_ratio=None if kind is Kind.IDLE else rate,
        cpu_ratio=cpu,
        memory_ratio=memory,
        p99_ratio=p99,
        goals=[str(goal) for goal in goals],
        reached=[_is_reached(goal, figures[goal.measure]) for goal in goals],
        fault=fault,
    )


def _ratios(ours: Summary | None, its: Summary) -> tuple[float | None, float | None, float | None]:
    if ours is None:
        return None, None, None
    return ratio(ours.rate, its.rate), ratio(ours.cpu_us, its.cpu_us), ratio(ours.memory_kib, its.memory_kib)


def _is_reached(goal: Goal, figure: float | None) -> bool | None:
    return None if figure is None else goal.is_reached(figure)


def _added(figure: Spread | None, direct: Spread | None) -> float | None:
    return None if figure is None or direct is None else figure.median - direct.median


def _added_ratio(ours: float | None, its: float | None) -> float | None:
    # A relay that seems to add nothing was measured in too much noise to compare with it.
    return None if ours is None or its is None or its <= 0 else ours / its


def format_table(rows: Sequence[Row]) -> str:
    """Lines of text."""
    faults = "".join(f"{row.workload}, {row.relay}: not measured: {row.fault}\n" for row in rows if row.fault)
    return format_grid(HEAD, [_cells(row) for row in rows], left=_WORDS) + "\n" + NOTE + faults


def format_others(others: Mapping[str, Sequence[Row]]) -> str:
    """The ratios of ours with other Pythons to the other relays."""
    rows = [
        (row.workload, label, row.relay, f"{row.cpu_ratio:.2f}", *_verdict(row))
        for label, each in others.items()
        for row in each
        if row.cpu_ratio is not None and not row.relay.startswith(OURS)
    ]
    return format_grid(("workload", "relay", "beside", "CPU", "goal", "reached"), rows, left=(0, 1, 2, 4, 5))


def _verdict(row: Row) -> tuple[str, str]:
    goal = "not measured" if row.fault else ", ".join(row.goals)
    return goal, ", ".join(map(format_reached, row.reached))


def _cells(row: Row) -> tuple[str, ...]:
    ratios = tuple(
        "" if value is None else f"{value:.2f}"
        for value in (row.rate_ratio, row.cpu_ratio, row.memory_ratio, row.p99_ratio)
    )
    return (row.workload, row.relay, *_figures(row), *ratios, *_verdict(row))


def _figures(row: Row) -> tuple[str, ...]:
    summary = row.summary
    if summary is None:
        return ("",) * 12
    if row.kind is Kind.IDLE:
        return ("",) * 10 + (format_spread(summary.memory_kib, ".1f"), str(summary.errors))
    # GB to MB, and microseconds per GB to milliseconds per GB.
    rate, cpu = (1000, 0.001) if row.kind is Kind.BULK else (1, 1)
    form = ".0f" if row.kind is Kind.BULK else ".1f"
    return (
        format_spread(summary.rate, ",.0f", rate),
        f"({summary.rate.low * rate:,.0f}-{summary.rate.high * rate:,.0f})" if summary.rate else "",
        *(format_spread(summary.cpu_us, form, cpu), format_spread(summary.user_us, form, cpu)),
        *(format_spread(summary.busy, ".0%"), format_spread(summary.queued, ".0%")),
        *_latencies(row, summary),
        *(format_spread(summary.longest_ms, ".3f"), format_spread(summary.held_up, ".0%")),
        "",
        str(summary.errors),
    )


def _latencies(row: Row, summary: Summary) -> tuple[str, str]:
    if row.added_p50_ms is None or row.added_p99_ms is None or row.relay == DIRECT:
        return format_spread(summary.p50_ms, ".3f"), format_spread(summary.p99_ms, ".3f")
    return f"{row.added_p50_ms:+.3f}", f"{row.added_p99_ms:+.3f}"
