"""One of several processes that relay on the same ports (SO_REUSEPORT, socket(7)).

The law: a worker lives and ends with its supervisor. It inherits a socket, receives its settings there and sends its
counters there; when the other end is gone, it ends as after SIGTERM. worker_start.py starts it. Tested in
test_supervisor.py.
"""

from __future__ import annotations

import dataclasses
import functools
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import structlog
import trio

from proxy.relay.relay import Relay, open_listeners
from proxy.route_services.starting import beside, make_followed_routes
from proxy.serve.program import freeze_loaded_objects
from proxy.serve.worker_channel import WorkerChannel
from proxy.serve.worker_reports import Report
from proxy.serve.worker_settings import WorkerSettings, receive_worker_settings
from sidecar.cli.logs import configure_logging
from sidecar.cli.program import run_program
from sidecar.cli.signals import run_until_signal
from sidecar.cli.stray_signals import survive_stray_signals
from sidecar.loop.poller import BATCH

if TYPE_CHECKING:
    from proxy.route_services.following import FollowedRoutes

REPORT_SECONDS: Final = 1.0
"""Between two reports, and so the greatest age of the supervisor's figures."""


def main(arguments: Sequence[str]) -> None:
    """Relay until the supervisor ends this worker, or is gone."""
    survive_stray_signals()
    channel = socket.socket(fileno=int(arguments[0]))
    settings = receive_worker_settings(channel)
    configure_logging(format=settings.log_format, level=settings.log_level)
    structlog.contextvars.bind_contextvars(worker=settings.number)
    run_program(_run, settings, channel, handlers=BATCH)


async def _run(settings: WorkerSettings, channel: socket.socket) -> int:
    relay = Relay(settings.relay, open_listeners(settings.relay, shared=True), shared=True)
    channel.setblocking(False)
    async with trio.SocketStream(trio.socket.from_stdlib_socket(channel)) as stream:
        channel_of_worker = WorkerChannel(stream, relay.core.tap)
        status = await run_until_signal(functools.partial(_work, relay, channel_of_worker), grace=settings.drain)
        await channel_of_worker.finish()
        return status


async def _work(relay: Relay, channel: WorkerChannel, stopping: trio.Event) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.follow_supervisor)
        nursery.start_soon(channel.pass_on_ended)
        serving = functools.partial(relay.serve, stopping=stopping)
        ended = trio.Event()

        async def serve(*, task_status: trio.TaskStatus[object]) -> None:
            await serving(task_status=task_status)
            ended.set()

        await nursery.start(serve)
        # The supervisor logs what changes.
        endpoints = [listener.endpoint for listener in relay.listeners]
        fixed = beside(endpoints, relay.backends.values())
        routes = make_followed_routes(relay.core.settings.route_services, relay, fixed, quiet=True)
        if routes is not None:
            await nursery.start(routes.run, relay.core.settings, stopping)
        freeze_loaded_objects()
        while not ended.is_set():
            await channel.report(_report(relay, routes))
            with trio.move_on_after(REPORT_SECONDS):
                await ended.wait()
        await channel.report(_report(relay, routes))
        nursery.cancel_scope.cancel()


def _report(relay: Relay, routes: FollowedRoutes | None) -> Report:
    report = Report(relay.core.limit, relay.core.counters)
    if routes is not None:
        report = dataclasses.replace(report, waits=routes.table.waits(), failures=dict(routes.table.failures))
    return report
