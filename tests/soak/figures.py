"""The sampled figures of a server, and how much growth of each is noise. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.soak.flatness import Allowance, Verdict, judge

Sample = Mapping[str, float]
"""Figures and counters by name; a figure that the server does not export is missing."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure."""

    name: str
    unit: str
    allowance: Allowance
    metric: str | None = None
    """Its name in /metrics; otherwise it comes from /proc."""


FIGURES: Final = (
    Figure("memory", "MiB resident", Allowance(share=0.02, least=1.0)),
    # Both depend on the number of open connections.
    Figure("descriptors", "open", Allowance(share=0.05, least=5)),
    Figure("tasks", "living", Allowance(share=0.1, least=10), "dnsproxy_tasks"),
    Figure("threads", "", Allowance()),
    # It depends on the upstreams' faults.
    Figure("outstanding", "forwarded queries", Allowance(share=0.25, least=20), "dnsproxy_forward_outstanding"),
    Figure("names", "in the table", Allowance(), "dnsproxy_table_names"),
)


COUNTERS: Final = {
    "requests": "dnsproxy_dns_requests_total",
    "timeouts": "dnsproxy_forward_timeouts_total",
    "processor seconds": "process_cpu_seconds_total",
}
"""Counters, sampled to explain the figures: names and their metrics."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A figure over the whole run."""

    figure: Figure
    verdict: Verdict | None
    """None if the server does not export the figure."""
    lowest: float = 0.0
    highest: float = 0.0


def judge_samples(samples: Sequence[Sample]) -> list[Judged]:
    """Every figure. Raises TooFew."""
    return [_judge_figure(figure, samples) for figure in FIGURES]


def _judge_figure(figure: Figure, samples: Sequence[Sample]) -> Judged:
    values = [sample[figure.name] for sample in samples if figure.name in sample]
    if not values and samples:
        return Judged(figure, None)
    return Judged(figure, judge(values, figure.allowance), min(values), max(values))
