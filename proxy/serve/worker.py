"""One of several processes that relay on the same ports (SO_REUSEPORT, socket(7)).

The law: it lives and dies with its supervisor. It gets its orders over a socket that it was started with, tells there
what it counts, and ends as at SIGTERM when the other end of it is gone.

    python -m proxy.serve.worker DESCRIPTOR
"""

from __future__ import annotations

import functools
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Final

import structlog
import trio

from proxy.relay.relay import Relay, open_listeners
from proxy.serve.program import spare_garbage_search
from proxy.serve.worker_reports import Report, format_report
from proxy.serve.worker_settings import Orders, receive_orders
from sidecar.logs import configure_logging
from sidecar.program import run_program
from sidecar.signals import run_until_signal

REPORT_SECONDS: Final = 1.0
"""Between two reports; so old the figures of the supervisor may be."""


def main(arguments: Sequence[str]) -> None:
    """Relay until the supervisor asks for the end, or is gone."""
    channel = socket.socket(fileno=int(arguments[0]))
    orders = receive_orders(channel)
    configure_logging(format=orders.log_format, level=orders.log_level)
    structlog.contextvars.bind_contextvars(worker=orders.number)
    run_program(_run, orders, channel)


async def _run(orders: Orders, channel: socket.socket) -> int:
    relay = Relay(orders.settings, open_listeners(orders.settings, shared=True))
    channel.setblocking(False)
    async with trio.SocketStream(trio.socket.from_stdlib_socket(channel)) as stream:
        return await run_until_signal(functools.partial(_work, relay, stream), grace=orders.drain)


async def _work(relay: Relay, stream: trio.SocketStream, stopping: trio.Event) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_with_supervisor, stream)
        serving = functools.partial(relay.serve, stopping=stopping)
        ended = trio.Event()

        async def serve(*, task_status: trio.TaskStatus[object]) -> None:
            await serving(task_status=task_status)
            ended.set()

        await nursery.start(serve)
        spare_garbage_search()
        while not ended.is_set():
            await _tell(relay, stream)
            with trio.move_on_after(REPORT_SECONDS):
                await ended.wait()
        await _tell(relay, stream)
        nursery.cancel_scope.cancel()


async def _tell(relay: Relay, stream: trio.SocketStream) -> None:
    try:
        await stream.send_all(format_report(Report(relay.core.limit, relay.core.counters)))
    except trio.BrokenResourceError:
        # The supervisor is gone, which _end_with_supervisor sees as well.
        await trio.lowlevel.checkpoint()


async def _end_with_supervisor(stream: trio.SocketStream) -> None:
    """The supervisor says nothing after its orders, so there is only the end to be read."""
    try:
        while await stream.receive_some(1):
            pass
    except trio.BrokenResourceError:
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1:])
