"""Several workers on the same ports, and the one process that answers for them.

The law: the supervisor relays nothing. It claims the ports, starts the workers and starts again those that end, passes
the end on to them, answers on the admin port, and is the last to go. Each worker has listeners of its own, so one that
has died gets no clients while the others do.
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
from proxy.serve.program import say_where
from proxy.serve.worker_reports import Report, add_up, backoff, keep_of_ended, parse_report, share_of
from proxy.serve.worker_settings import Orders, format_orders
from proxy.settings import Settings
from sidecar.admin_port import AdminPort, open_admin_port
from sidecar.endpoints import Endpoint
from sidecar.errors import StartError
from sidecar.listeners import bound_endpoint, claim_tcp
from sidecar.signals import run_until_signal

LONG_LIFE: Final = 10.0
"""Seconds after which the end of a worker counts as its first one again."""
_LAST_WORDS: Final = 5.0
"""Seconds for workers to reset what is left at the end of the grace; then they are killed."""
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
    """Have so many workers relay until SIGTERM or SIGINT and drain; gives the exit status. Raises StartError."""
    with ExitStack() as stack:
        claimed = [stack.enter_context(claim_tcp(route.listen, flag=ROUTE_FLAG)) for route in settings.routes]
        port = stack.enter_context(open_admin_port(admin, backlog=128))
        # Port 0 has become a number by now, which all workers are to share.
        routes = tuple(
            dataclasses.replace(route, listen=bound_endpoint(claim))
            for route, claim in zip(settings.routes, claimed, strict=True)
        )
        settings = dataclasses.replace(settings, routes=routes)
        each = dataclasses.replace(settings, max_connections=share_of(settings.max_connections, workers=workers))
        orders = [Orders(number, each, drain, log_format, log_level) for number in range(1, workers + 1)]
        fleet = Fleet(orders)
        serve = functools.partial(_supervise, fleet, settings, port)
        return await run_until_signal(serve, grace=drain)


async def _supervise(fleet: Fleet, settings: Settings, port: AdminPort, stopping: trio.Event) -> None:
    endpoints = [route.listen for route in settings.routes]
    backends = {route.backend: Backend(route.backend, listeners=endpoints) for route in settings.routes}
    view = View(
        settings,
        targets=[(route.listen, backends[route.backend]) for route in settings.routes],
        counters=fleet.counters,
        limit=lambda: fleet.limit,
        fault=lambda: None if fleet.up else _NO_WORKER,
        collectors=[fleet],
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(follow_backends, list(backends.values()), settings)
        await nursery.start(serve_relay_admin, view, port, stopping)
        async with trio.open_nursery() as working:
            for orders in fleet.orders:
                await working.start(fleet.keep_working, orders, stopping)
            say_where(view)
            log.info("limits", connections=fleet.limit, workers=len(fleet.orders))
        nursery.cancel_scope.cancel()


class Fleet(Collector):
    """The workers, and what they have told."""

    def __init__(self, orders: Sequence[Orders]) -> None:
        self.orders = orders
        self.counters = Counters()
        """The sums over all workers, those that have ended among them."""
        self.restarts = 0
        self._told: dict[int, Report] = {}
        """The last report of each worker that is up."""
        self._ended = Counters()

    @property
    def up(self) -> int:
        """How many workers relay now."""
        return len(self._told)

    @property
    def limit(self) -> int:
        """How many connections they may have."""
        return sum(report.limit for report in self._told.values())

    def collect(self) -> Iterator[Metric]:
        """The metric families of now."""
        yield GaugeMetricFamily("proxy_workers", "Processes that relay now.", value=self.up)
        yield CounterMetricFamily("proxy_worker_restarts", "Workers started again.", value=self.restarts)

    def describe(self) -> list[Metric]:
        """No names in advance, as RelayCollector has it."""
        return []

    async def keep_working(
        self, orders: Orders, stopping: trio.Event, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Have a worker until stopping, started again whenever it ends. Raises StartError where it never started."""
        first = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tell_started, first, task_status)
            ended = await self._work(orders, stopping, first)
            if not first.is_set() and not stopping.is_set():
                # It has said why itself, as every program does.
                raise StartError(f"worker {orders.number} did not start", status=max(1, ended.status))
            first.set()
        ends = 0
        while not stopping.is_set():
            ends = 1 if ended.seconds >= LONG_LIFE else ends + 1
            delay = backoff(ends)
            log.error("worker ended", worker=orders.number, status=ended.status, restart_seconds=delay)
            with trio.move_on_after(delay):
                await stopping.wait()
                return
            self.restarts += 1
            ended = await self._work(orders, stopping, trio.Event())

    async def _work(self, orders: Orders, stopping: trio.Event, started: trio.Event) -> Ended:
        """One life of a worker, which has started when it reports."""
        begun = trio.current_time()
        async with _worker(orders) as (process, stream), trio.open_nursery() as nursery:
            nursery.start_soon(_pass_on, stopping, process)
            try:
                # Until its end: what it counted last comes last.
                await _read_reports(stream, functools.partial(self._take, orders.number, started))
            finally:
                self._forget(orders.number)
            status = await process.wait()
            nursery.cancel_scope.cancel()
        return Ended(status, trio.current_time() - begun)

    def _take(self, number: int, started: trio.Event, report: Report) -> None:
        self._told[number] = report
        self._add_up()
        started.set()

    def _forget(self, number: int) -> None:
        report = self._told.pop(number, None)
        if report is not None:
            keep_of_ended(report.counters)
            add_up(self._ended, [self._ended, report.counters])
            self._add_up()

    def _add_up(self) -> None:
        add_up(self.counters, [self._ended, *(report.counters for report in self._told.values())])


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended, and how long it lived."""

    status: int
    seconds: float


@contextlib.asynccontextmanager
async def _worker(orders: Orders) -> AsyncIterator[tuple[trio.Process, trio.SocketStream]]:
    """A process with its orders, and what it answers on; it has ended when the block has."""
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        command = [sys.executable, "-m", "proxy.serve.worker", str(theirs.fileno())]
        try:
            # In a session of its own: Ctrl-C is for the supervisor, which passes it on.
            process = await trio.lowlevel.open_process(command, pass_fds=(theirs.fileno(),), start_new_session=True)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
    try:
        async with stream:
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(format_orders(orders))
            yield process, stream
    finally:
        # One that was asked once takes the second time for an order to reset what is left.
        process.terminate()
        with trio.move_on_after(_LAST_WORDS, shield=True):
            await process.wait()
        if process.returncode is None:
            process.kill()
            with trio.move_on_after(_LAST_WORDS, shield=True):
                await process.wait()


async def _pass_on(stopping: trio.Event, process: trio.Process) -> None:
    await stopping.wait()
    process.terminate()


async def _read_reports(stream: trio.SocketStream, take: Callable[[Report], None]) -> None:
    """What a worker tells, until its end."""
    received = b""
    with contextlib.suppress(trio.BrokenResourceError):
        while more := await stream.receive_some():
            *lines, received = (received + more).split(b"\n")
            for line in lines:
                take(parse_report(line))


async def _tell_started(started: trio.Event, task_status: trio.TaskStatus[None]) -> None:
    await started.wait()
    task_status.started()
