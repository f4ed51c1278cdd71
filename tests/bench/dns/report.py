"""The table at the end, and the same as JSON. Pure.

The law: a row a server and workload, the goal against that server beside the ratio that it is about; what was not
measured says why in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.dns.disturbing import Disturbances, Disturbed
from tests.bench.dns.goals import BESIDE_TABLE, LATENCY_MS, Goal, Measure, goal_for
from tests.bench.dns.peers import OURS
from tests.bench.dns.samples import Sample, Summary, summarise_samples
from tests.bench.kit.figures import Spread, format_spread, ratio, spread
from tests.bench.kit.rounds import Key, Measured
from tests.kit.grid import format_grid

HEAD: Final = (
    *("workload", "server", "q/s", "(min-max)", "CPU us", "user", "busy", "queued", "lost", "p50 ms", "p99", "max"),
    *("ours/its q/s", "CPU", "p50", "goal", "reached"),
)
_WORDS: Final = (0, 1, 14)

NOTE: Final = """\
q/s, CPU and ratios are medians over rounds. CPU: microseconds of the server's processor time per answered query.
busy: the share of one processor that the server used under load; well below 100 %, the load held it up, and CPU tells
more than q/s. queued: the share of the time that it was ready to run while others had the processor, which is noise.
p50, p99, max: answers at 1,000 queries a second, after the load or during the disturbance; in the rows `rest`, without
any load, at their own rate.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One server under one workload, or ours during one disturbance."""

    workload: str
    server: str
    summary: Summary | None = None
    p50_ms: Spread | None = None
    p99_ms: Spread | None = None
    worst_ms: Spread | None = None
    lost: int = 0
    errors: int = 0
    busy: Spread | None = None
    queued: Spread | None = None
    qps_ratio: float | None = None
    cpu_ratio: float | None = None
    p50_ratio: float | None = None
    goal: str = ""
    reached: bool | None = None
    fault: str = ""
    done: int | None = None
    swaps: int | None = None


def make_rows(measured: Measured[Sample], disturbed: Disturbances) -> list[Row]:
    """All rows, in the order in which they were measured."""
    summaries = {key: summarise_samples(samples) for key, samples in measured.samples.items() if samples}
    rows = [_make_row(key, summaries, measured.faults.get(key, "")) for key in measured.samples]
    names = dict.fromkeys((*disturbed.rounds, *disturbed.faults))
    return rows + [
        _disturbed_row(name, disturbed.rounds.get(name, []), disturbed.faults.get(name, "")) for name in names
    ]


def _make_row(key: Key, summaries: dict[Key, Summary], fault: str) -> Row:
    workload, server = key
    summary = summaries.get(key)
    if summary is None:
        return Row(workload, server, fault=fault or "not measured")
    goal, ratios = _compare(key, summaries)
    figure = None if goal is None else ratios.get(goal.measure)
    return Row(
        workload,
        server,
        summary,
        p50_ms=summary.p50_ms,
        p99_ms=summary.p99_ms,
        worst_ms=summary.worst_ms,
        lost=summary.lost,
        errors=summary.errors,
        busy=summary.busy,
        queued=summary.queued,
        qps_ratio=ratios.get("q/s"),
        cpu_ratio=ratios.get("CPU"),
        p50_ratio=ratios.get("p50"),
        goal=str(goal or ""),
        reached=None if goal is None or figure is None else goal.is_reached(figure),
        fault=fault,
    )


def _compare(key: Key, summaries: dict[Key, Summary]) -> tuple[Goal | None, dict[Measure, float | None]]:
    """The goal of a row, and the ratios by measure; that in p50 only at rest, where nothing else warms the caches."""
    workload, server = key
    ours, other, goal = summaries.get((workload, OURS)), summaries.get(key), goal_for(workload, server)
    if server == OURS:
        if workload not in BESIDE_TABLE:
            return None, {}
        other, goal = summaries.get(("table", OURS)), BESIDE_TABLE[workload]
    if ours is None or other is None:
        return goal, {}
    p50 = ratio(ours.p50_ms, other.p50_ms) if ours.qps is None else None
    return goal, {"q/s": ratio(ours.qps, other.qps), "CPU": ratio(ours.cpu_us, other.cpu_us), "p50": p50}


def _disturbed_row(name: str, rounds: Sequence[Disturbed], fault: str) -> Row:
    p99 = spread([each.probe.p99 for each in rounds if each.probe.p99 is not None])
    return Row(
        f"during {name}",
        OURS,
        p50_ms=spread([each.probe.p50 for each in rounds if each.probe.p50 is not None]),
        p99_ms=p99,
        worst_ms=spread([each.probe.worst for each in rounds if each.probe.worst is not None]),
        lost=sum(each.probe.lost for each in rounds),
        errors=sum(each.probe.errors for each in rounds),
        busy=spread([each.busy for each in rounds]),
        queued=spread([each.queued for each in rounds]),
        goal=f"p99 < {LATENCY_MS:g} ms",
        reached=None if p99 is None else p99.median < LATENCY_MS,
        fault=fault,
        done=sum(each.done or 0 for each in rounds),
        swaps=sum(each.swaps for each in rounds),
    )


def format_table(rows: Sequence[Row]) -> str:
    """Lines of text."""
    faults = "".join(f"{row.workload}, {row.server}: not measured: {row.fault}\n" for row in rows if row.fault)
    return format_grid(HEAD, [_cells(row) for row in rows], left=_WORDS) + "\n" + NOTE + faults


def _cells(row: Row) -> tuple[str, ...]:
    qps = row.summary.qps if row.summary else None
    cpu = row.summary.cpu_us if row.summary else None
    user = row.summary.user_us if row.summary else None
    reached = {None: "", True: "yes", False: "NO"}[row.reached]
    return (
        row.workload,
        row.server,
        _thousands(qps),
        f"({qps.low / 1000:.1f}-{qps.high / 1000:.1f} k)" if qps else "",
        *(
            format_spread(cpu, ".2f"),
            format_spread(user, ".2f"),
            format_spread(row.busy, ".0%"),
            format_spread(row.queued, ".0%"),
            _lost(row),
        ),
        *(
            format_spread(row.p50_ms, ".2f"),
            format_spread(row.p99_ms, ".2f"),
            f"{row.worst_ms.high:.2f}" if row.worst_ms else "",
        ),
        f"{row.qps_ratio:.2f}" if row.qps_ratio else "",
        f"{row.cpu_ratio:.2f}" if row.cpu_ratio else "",
        f"{row.p50_ratio:.2f}" if row.p50_ratio else "",
        "not measured" if row.fault else row.goal,
        reached,
    )


def _thousands(value: Spread | None) -> str:
    return f"{value.median / 1000:.1f} k" if value else ""


def _lost(row: Row) -> str:
    return f"{row.lost}" + (f"+{row.errors} bad" if row.errors else "")
