"""Runs one `dnsproxy tap`: from the request to the exit status.

The law: a count, the time or a signal ends it, with a status that says what was seen. Everything else that ends it is
an error.
"""

from __future__ import annotations

import math
import signal

import trio

from dnsproxy.tap_command.port import PortWatch
from dnsproxy.tap_command.request import ServicePods, TapRequest
from dnsproxy.tap_command.screen import Screen
from dnsproxy.tap_command.service import ServiceWatch
from dnsproxy.tap_command.viewer import Viewer
from sidecar.cli.logs import configure_logging
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.tally import Tally


async def watch_queries(request: TapRequest) -> int:
    """Show the queries; returns the exit status. Raises StartError with status 3."""
    tally, screen = Tally(request.count), Screen(json=request.json)
    ending = trio.Event()
    source = _source_of(request, Viewer(screen, tally, ending.set))
    try:
        with trio.move_on_after(math.inf if request.seconds is None else request.seconds):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_set_at_signal, ending)
                nursery.start_soon(screen.keep_waiting_line)
                nursery.start_soon(source.run)
                await ending.wait()
                nursery.cancel_scope.cancel()
    finally:
        screen.clear()
    if source.unheard and not tally.seen:
        raise StartError(source.unheard, status=ExitStatus.UNKNOWN)
    return tally.status


def _source_of(request: TapRequest, viewer: Viewer) -> ServiceWatch | PortWatch:
    if isinstance(request.place, ServicePods):
        configure_logging(level="warning")
        return ServiceWatch(request.place, request.wanted, viewer)
    return PortWatch(request.place, request.wanted, viewer)


async def _set_at_signal(ending: trio.Event) -> None:
    """What was seen until Ctrl-C decides the exit status; `timeout` sends SIGTERM."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await anext(signals)
        ending.set()
