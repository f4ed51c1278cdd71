"""Runs several workers on the same ports, with one admin port for all of them.

The law: the supervisor relays nothing. It reserves the ports, starts and restarts the workers, passes the stop signal
on to them, serves the admin port, and is the last to exit. Each worker has its own listeners, so a dead worker gets no
clients.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Final

import structlog
import trio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.admin.server import View, serve_relay_admin
from proxy.backends.backend import Backend
from proxy.backends.discovery import follow_backends
from proxy.relay.counters import Counters
from proxy.routes import ROUTE_FLAG
from proxy.serve.program import log_routes
from proxy.serve.worker_reports import Report, add_up, backoff, keep_totals, parse_report, share_of
from proxy.serve.worker_settings import WorkerSettings, format_worker_settings
from proxy.settings import Settings
from sidecar.admin.port import AdminPort, open_admin_port
from sidecar.cli.signals import run_until_signal
from sidecar.sockets.listeners import bound_endpoint, claim_tcp
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError

LONG_LIFE: Final = 10.0
"""Seconds of life after which the end of a worker no longer counts as one in quick succession."""
_EXIT_SECONDS: Final = 5.0
"""Seconds for workers to reset their remaining connections after the grace; then they are killed."""
_NO_WORKER: Final = "no worker is up"

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def supervise(
    settings: Settings,
    admin: Endpoint | None,
    drain: float,
    workers: int,
    log_format: str | None,
    log_level: str,
) -> int:
    """Run `workers` processes until SIGTERM or SIGINT, then drain; returns the exit status. Raises StartError."""
    with ExitStack() as stack:
        claimed = [stack.enter_context(claim_tcp(route.listen, flag=ROUTE_FLAG)) for route in settings.routes]
        port = stack.enter_context(open_admin_port(admin, backlog=128))
        # By now, port 0 has become a number that all workers share.
        routes = tuple(
            dataclasses.replace(route, listen=bound_endpoint(claim))
            for route, claim in zip(settings.routes, claimed, strict=True)
        )
        settings = dataclasses.replace(settings, routes=routes)
        each = dataclasses.replace(settings, max_connections=share_of(settings.max_connections, workers=workers))
        fleet = Fleet([WorkerSettings(number, each, drain, log_format, log_level) for number in range(1, workers + 1)])
        serve = functools.partial(_supervise, fleet, settings, port)
        return await run_until_signal(serve, grace=drain)


async def _supervise(fleet: Fleet, settings: Settings, port: AdminPort, stopping: trio.Event) -> None:
    endpoints = [route.listen for route in settings.routes]
    backends = {route.backend: Backend(route.backend, listeners=endpoints) for route in settings.routes}
    view = View(
        settings,
        backends=[(route.listen, backends[route.backend]) for route in settings.routes],
        counters=fleet.counters,
        limit=lambda: fleet.limit,
        fault=lambda: None if fleet.up else _NO_WORKER,
        collectors=[fleet],
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(follow_backends, list(backends.values()), settings)
        await nursery.start(serve_relay_admin, view, port, stopping)
        async with trio.open_nursery() as working:
            for worker in fleet.workers:
                await working.start(fleet.keep_working, worker, stopping)
            log_routes(view)
            log.info("limits", connections=fleet.limit, workers=len(fleet.workers))
        nursery.cancel_scope.cancel()


class Fleet(Collector):
    """The workers and their reports."""

    def __init__(self, workers: Sequence[WorkerSettings]) -> None:
        self.workers = workers
        self.counters = Counters()
        """The sums of all workers, ended ones included."""
        self.restarts = 0
        self._reports: dict[int, Report] = {}
        """The last report of each running worker, by its number."""
        self._ended = Counters()

    @property
    def up(self) -> int:
        """How many workers are running."""
        return len(self._reports)

    @property
    def limit(self) -> int:
        """How many connections the running workers may have."""
        return sum(report.limit for report in self._reports.values())

    def collect(self) -> Iterator[Metric]:
        """The current metric families."""
        yield GaugeMetricFamily("proxy_workers", "Running workers.", value=self.up)
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
        async with _worker_process(worker) as (process, stream), trio.open_nursery() as nursery:
            nursery.start_soon(_pass_on_stop, stopping, process)
            try:
                # Until its end, because its last report has its last counts.
                await _read_reports(stream, functools.partial(self._take, worker.number, started))
            finally:
                self._forget(worker.number)
            status = await process.wait()
            nursery.cancel_scope.cancel()
        return Ended(status, trio.current_time() - begun)

    def _take(self, number: int, started: trio.Event, report: Report) -> None:
        self._reports[number] = report
        self._add_up()
        started.set()

    def _forget(self, number: int) -> None:
        report = self._reports.pop(number, None)
        if report is not None:
            keep_totals(report.counters)
            add_up(self._ended, [self._ended, report.counters])
            self._add_up()

    def _add_up(self) -> None:
        add_up(self.counters, [self._ended, *(report.counters for report in self._reports.values())])


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """The exit status and the lifetime of a worker."""

    status: int
    seconds: float


@contextlib.asynccontextmanager
async def _worker_process(worker: WorkerSettings) -> AsyncIterator[tuple[trio.Process, trio.SocketStream]]:
    """A worker process and the stream of its reports; the process has ended when the block ends."""
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        command = [sys.executable, "-m", "proxy.serve.worker", str(theirs.fileno())]
        try:
            # In its own session: only the supervisor gets Ctrl-C, and passes it on.
            process = await trio.lowlevel.open_process(command, pass_fds=(theirs.fileno(),), start_new_session=True)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
    try:
        async with stream:
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(format_worker_settings(worker))
            yield process, stream
    finally:
        # To a worker that is draining, a second SIGTERM means: reset the remaining connections.
        process.terminate()
        with trio.move_on_after(_EXIT_SECONDS, shield=True):
            await process.wait()
        if process.returncode is None:
            process.kill()
            with trio.move_on_after(_EXIT_SECONDS, shield=True):
                await process.wait()


async def _pass_on_stop(stopping: trio.Event, process: trio.Process) -> None:
    await stopping.wait()
    process.terminate()


async def _read_reports(stream: trio.SocketStream, take: Callable[[Report], None]) -> None:
    """Read the reports of a worker until its end."""
    received = b""
    with contextlib.suppress(trio.BrokenResourceError):
        while more := await stream.receive_some():
            *lines, received = (received + more).split(b"\n")
            for line in lines:
                take(parse_report(line))


async def _report_start(started: trio.Event, task_status: trio.TaskStatus[None]) -> None:
    await started.wait()
    task_status.started()
