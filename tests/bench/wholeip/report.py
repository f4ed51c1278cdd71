"""The tables at the end, and the same as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from tests.bench.kit.figures import percentile, ratio, spread
from tests.bench.wholeip.applying import Applied, Ended
from tests.bench.wholeip.resync import Resync
from tests.bench.wholeip.traffic import Traffic
from tests.kit.grid import format_grid

_TRAFFIC_HEAD: Final = (
    *("way", "Gbit/s (low-high)", "CPU s/Gbit (low-high)"),
    *("CPU us/datagram (low-high)", "to tracked", "CPU us/flow (low-high)", "to tracked"),
)
_APPLIED_HEAD: Final = (
    *("mappings", "value s", "table s", "read back s", "one change ms p50", "p99"),
    *("to the packet ms p50", "p99"),
)
_RESYNC_HEAD: Final = ("one change", "changes", "ms p50", "p99", "max")
_BASE: Final = "tracked"
RESYNC_GOAL: Final = 0.06
"""Seconds, for 99 of 100 changes during comparisons."""


def format_traffic(measured: Sequence[Traffic]) -> str:
    """A line a way."""
    base = next(one for one in measured if one.way.name == _BASE)
    about = "".join(f"{one.way.name}: {one.way.about}\n" for one in measured)
    return format_grid(_TRAFFIC_HEAD, [_traffic(one, base) for one in measured]) + "\n" + about


def _traffic(one: Traffic, base: Traffic) -> tuple[str, ...]:
    return (
        one.way.name,
        _spread(one.gigabits, 2),
        _spread(one.bulk_cpu, 3),
        _spread(one.datagram_cpu, 2),
        _ratio(one.datagram_cpu, base.datagram_cpu),
        _spread(one.flow_cpu, 1),
        _ratio(one.flow_cpu, base.flow_cpu),
    )


def _ratio(values: Sequence[float], base: Sequence[float]) -> str:
    found = ratio(spread(values), spread(base))
    return "-" if found is None else f"{found:.2f}"


def _spread(values: Sequence[float], digits: int) -> str:
    found = spread(values)
    if found is None:
        return "-"
    return f"{found.median:.{digits}f} ({found.low:.{digits}f}-{found.high:.{digits}f})"


def format_applied(measured: Sequence[Applied]) -> str:
    """A line a count of mappings."""
    return format_grid(_APPLIED_HEAD, [_applied(one) for one in measured])


def _applied(one: Applied) -> tuple[str, ...]:
    return (
        f"{one.mappings:,}",
        *(f"{seconds:.3f}" for seconds in (one.value, one.whole, one.read)),
        *(_milliseconds(values, share) for values in (one.change, one.packet) for share in (0.5, 0.99)),
    )


def _milliseconds(values: Sequence[float], share: float) -> str:
    found = percentile(values, share)
    return "-" if found is None else f"{found * 1000:.1f}"


def format_ended(one: Ended) -> str:
    """A line."""
    return (
        f"{one.flows:,} flows tracked: {one.look:.2f} s to see that none has to end, "
        f"{one.end:.2f} s to end {one.ended:,} that a filter no longer allows\n"
    )


def format_resync(one: Resync) -> str:
    """A line a kind of comparison, and the goal."""
    kinds = {
        f"among {one.mappings:,} mappings, no comparison": one.quiet,
        "during a comparison that finds nothing": one.clean,
        f"during a comparison and repair of {one.damaged:,} elements": one.repairing,
    }
    rows = [
        (name, str(len(values)), *(_milliseconds(values, share) for share in (0.5, 0.99, 1.0)))
        for name, values in kinds.items()
    ]
    found = [percentile(values, 0.99) for values in (one.clean, one.repairing)]
    reached = all(value is not None and value < RESYNC_GOAL for value in found)
    goal = f"goal: p99 during a comparison < {RESYNC_GOAL * 1000:.0f} ms: {'reached' if reached else 'MISSED'}\n"
    return format_grid(_RESYNC_HEAD, rows) + "\n" + goal


def to_json(
    traffic: Sequence[Traffic], applied: Sequence[Applied], ended: Ended | None, resync: Resync | None, **head: Any
) -> dict[str, Any]:
    """How it was measured, and every figure."""
    return {
        **head,
        "traffic": [{**asdict(one), "way": one.way.name} for one in traffic],
        "applied": [asdict(one) for one in applied],
        "ended": ended and asdict(ended),
        "resync": resync and asdict(resync),
    }
