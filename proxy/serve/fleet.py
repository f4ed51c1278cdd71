"""The workers of a supervisor: their restarts, their reports and the sums of them.

The law: a worker that ends is started again after its back-off, and one that hangs is ended: its listeners would keep
their share of the new connections. Tested in test_supervisor.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
import trio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.relay.counters import Counters
from proxy.serve.silence import Silence
from proxy.serve.worker_process import (
    kill_when_hung,
    pass_on_listening,
    pass_on_stop,
    read_reports,
    worker_process,
)
from proxy.serve.worker_reports import EndedBatch, Report, add_up, backoff, keep_totals
from proxy.serve.worker_settings import WorkerSettings
from proxy.tap.tap import Tap
from sidecar.values.errors import StartError

LONG_LIFE: Final = 10.0
"""Seconds of life after which the end of a worker no longer counts as one in quick succession."""
_NO_WORKER: Final = "no worker is up"

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Fleet(Collector):
    """The workers and their reports."""

    def __init__(
        self,
        workers: Sequence[WorkerSettings],
        *,
        tap: Tap | None = None,
        on_failures: Callable[[str, Mapping[int, str]], None] = lambda _who, _failures: None,
    ) -> None:
        """`tap` gets the connections of all workers while it has a listener.

        `on_failures` gets the ports that a worker cannot open, with each of its reports, and none at its end.
        """
        self.workers = workers
        self._tap = tap or Tap()
        self._on_failures = on_failures
        self.counters = Counters()
        """The sums of all workers, ended ones included."""
        self.restarts = 0
        self._reports: dict[int, Report] = {}
        """The last report of each running worker, by its number."""
        self._silences: dict[int, Silence] = {}
        """Of each worker process, by its number."""
        self._ended = Counters()

    @property
    def up(self) -> int:
        """How many workers are running, without the silent ones."""
        return len(self._reports) - self._silent()

    def fault(self) -> str | None:
        """Why connections may fail; None if they do not."""
        if silent := self._silent():
            return f"{silent} of {len(self.workers)} workers are silent"
        if not self._reports:
            return _NO_WORKER
        # One that knows the routes is enough: the kernel gives a port's connections to those that listen there.
        waits = [report.waits for report in self._reports.values()]
        return waits[0] if all(waits) else None

    def _silent(self) -> int:
        return sum(silence.is_quiet for silence in self._silences.values())

    @property
    def limit(self) -> int:
        """How many connections the running workers may have."""
        return sum(report.limit for report in self._reports.values())

    def collect(self) -> Iterator[Metric]:
        """The current metric families."""
        yield GaugeMetricFamily("proxy_workers", "Running workers, without those that are silent.", value=self.up)
        yield CounterMetricFamily("proxy_worker_restarts", "Restarted workers.", value=self.restarts)

    def describe(self) -> list[Metric]:
        """No names in advance, as in RelayCollector."""
        return []

    async def keep_working(
        self,
        worker: WorkerSettings,
        stopping: trio.Event,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run a worker until `stopping`; restart it when it ends. Raises StartError if its first start fails."""
        first = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_report_start, first, task_status)
            ended = await self._work(worker, stopping, first)
            if not first.is_set() and not stopping.is_set():
                # The worker has printed the reason itself.
                raise StartError(f"worker {worker.number} did not start", status=max(1, ended.status))
            first.set()
        ends = 0
        while not stopping.is_set():
            ends = 1 if ended.seconds >= LONG_LIFE else ends + 1
            delay = backoff(ends)
            log.error("worker ended", worker=worker.number, status=ended.status, restart_seconds=delay)
            with trio.move_on_after(delay):
                await stopping.wait()
                return
            self.restarts += 1
            ended = await self._work(worker, stopping, trio.Event())

    async def _work(self, worker: WorkerSettings, stopping: trio.Event, started: trio.Event) -> Ended:
        """Run a worker process once; its first report shows that it has started."""
        begun = trio.current_time()
        silence = self._silences[worker.number] = Silence()
        async with worker_process(worker) as (process, stream), trio.open_nursery() as nursery:
            nursery.start_soon(pass_on_stop, stopping, process)
            nursery.start_soon(pass_on_listening, self._tap, stream)
            nursery.start_soon(functools.partial(kill_when_hung, process, silence, number=worker.number))
            try:
                # Until its end, because its last report has its last counts.
                await read_reports(
                    stream, functools.partial(self._take, worker.number, started), take_ended=self._take_ended
                )
            finally:
                self._forget(worker.number)
            status = await process.wait()
            nursery.cancel_scope.cancel()
        return Ended(status, trio.current_time() - begun)

    def _take(self, number: int, started: trio.Event, report: Report) -> None:
        self._silences[number].end()
        self._reports[number] = report
        self._on_failures(_name_of(number), report.failures)
        self._add_up()
        started.set()

    def _take_ended(self, batch: EndedBatch) -> None:
        for event in batch.events:
            self._tap.note(event)
        self._tap.note_dropped(batch.dropped)

    def _forget(self, number: int) -> None:
        del self._silences[number]
        report = self._reports.pop(number, None)
        self._on_failures(_name_of(number), {})
        if report is not None:
            keep_totals(report.counters)
            add_up(self._ended, [self._ended, report.counters])
            self._add_up()

    def _add_up(self) -> None:
        add_up(self.counters, [self._ended, *(report.counters for report in self._reports.values())])


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit status and the lifetime of a worker."""

    status: int
    seconds: float


def _name_of(number: int) -> str:
    return f"worker {number}"


async def _report_start(started: trio.Event, task_status: trio.TaskStatus[None]) -> None:
    await started.wait()
    task_status.started()
