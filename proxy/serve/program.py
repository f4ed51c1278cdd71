"""The relay as a service: beside the byte path its admin port, its metrics and its end.

The law: what is put together here is made elsewhere; this is the order in which it starts and stops.
"""

from __future__ import annotations

import functools
import gc

import structlog
import trio

from proxy.admin.server import View, serve_relay_admin
from proxy.relay.relay import Relay, open_listeners
from proxy.settings import Settings
from sidecar.admin_port import AdminPort, open_admin_port
from sidecar.endpoints import Endpoint
from sidecar.signals import run_until_signal

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def serve(settings: Settings, admin: Endpoint | None, drain: float) -> int:
    """Relay until SIGTERM or SIGINT and drain; gives the exit status. Raises StartError."""
    listeners = open_listeners(settings)
    try:
        relay = Relay(settings, listeners)
        port = open_admin_port(admin, backlog=128)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    with port:
        return await run_until_signal(functools.partial(_serve, relay, port), grace=drain)


async def _serve(relay: Relay, port: AdminPort, stopping: trio.Event) -> None:
    view = View(
        relay.core.settings,
        targets=[(listener.endpoint, listener.backend) for listener in relay.listeners],
        counters=relay.core.counters,
        limit=lambda: relay.core.limit,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_relay_admin, view, port, stopping)
        say_where(view)
        spare_garbage_search()
        core = relay.core
        log.info("limits", connections=core.limit, each_client=core.clients.most_each or core.limit)
        await relay.serve(stopping=stopping)
        nursery.cancel_scope.cancel()


def say_where(view: View) -> None:
    """A line of the log for each route."""
    for (endpoint, target), route in zip(view.targets, view.settings.routes, strict=True):
        log.info(
            "relaying",
            listen=str(endpoint),
            backend=str(target.destination),
            proxy_protocol=str(view.settings.protocol_of(route)),
        )


def spare_garbage_search() -> None:
    """What is loaded by now lives to the end: a search for garbage among it would hold every connection up."""
    gc.collect()
    gc.freeze()
