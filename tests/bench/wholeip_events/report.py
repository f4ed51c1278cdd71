"""The figures of a run, for people and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.bench.kit.figures import percentile

GOAL: Final = 0.1
"""Seconds, for 99 of 100 changes."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Times in seconds."""

    services: int
    filled: float
    """From the start of the agent to a table with all of them."""
    restarted: float
    """From the start of another one to its readiness, with that table there already."""
    memory: int
    """Octets that the agent has in memory, at the end."""
    cpu: float
    """Processor time of the agent for one change."""
    from_request: Sequence[float]
    """From the beginning of the request that changes something to the kernel's event."""
    from_answer: Sequence[float]
    """The same from the API server's answer on."""


def format_figures(figures: Figures) -> str:
    """Lines."""
    p99 = percentile(figures.from_request, 0.99)
    verdict = "reached" if p99 is not None and p99 < GOAL else "MISSED"
    return "\n".join(
        [
            f"{figures.services:,} Services, {len(figures.from_request)} changes of a pod's address",
            f"{'':24}{'p50':>10}{'p99':>10}{'max':>10}",
            _row("request to kernel", figures.from_request),
            _row("answer to kernel", figures.from_answer),
            f"goal: p99 from the request < {_ms(GOAL)}: {verdict}",
            f"start with an empty kernel to a whole table: {figures.filled:.2f} s",
            f"start with that table to readiness: {figures.restarted:.2f} s",
            f"the agent: {figures.memory / 1e6:.0f} MB, {_ms(figures.cpu)} of a processor for a change",
        ]
    )


def to_json(figures: Figures, **more: Any) -> dict[str, Any]:
    """All of it."""
    return {**asdict(figures), **more}


def _row(name: str, values: Sequence[float]) -> str:
    return f"{name:24}" + "".join(f"{_ms(percentile(values, share)):>10}" for share in (0.5, 0.99, 1.0))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value * 1000:.1f} ms"
