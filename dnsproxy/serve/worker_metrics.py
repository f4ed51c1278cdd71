"""The metrics of --workers. The law: without workers there are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class WorkerNumbers(Protocol):
    """The numbers of a pool of workers."""

    @property
    def answering(self) -> int:
        """How many workers answer."""

    @property
    def restarts(self) -> int:
        """How many workers were replaced."""

    @property
    def lag(self) -> float:
        """Seconds since the oldest version of the table was published that a worker does not show yet; or 0."""


def worker_metrics(workers: WorkerNumbers | None) -> Iterator[Metric]:
    """The families."""
    if workers is None:
        return
    yield GaugeMetricFamily("dnsproxy_workers", "Workers that answer (--workers).", value=workers.answering)
    yield CounterMetricFamily(
        "dnsproxy_worker_restarts", "Workers that died or hung, and were replaced.", value=workers.restarts
    )
    yield GaugeMetricFamily(
        "dnsproxy_worker_table_lag_seconds",
        "How long the slowest worker has been behind the table; 0 if none is behind.",
        value=workers.lag,
    )
