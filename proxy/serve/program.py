"""The relay in one process: start and stop of its listeners and its admin port.

The law: other modules make the parts; this module decides the order in which they start and stop. Tested in
tests/proxy/test_cli.py, with the real command.
"""

from __future__ import annotations

import functools
import gc

import structlog
import trio

from proxy.admin.server import View, serve_relay_admin
from proxy.relay.relay import Relay, open_listeners
from proxy.settings import Settings
from sidecar.admin.port import AdminPort, open_admin_port
from sidecar.cli.signals import run_until_signal
from sidecar.values.endpoints import Endpoint

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def serve(settings: Settings, admin: Endpoint | None, admin_hosts: tuple[str, ...], drain: float) -> int:
    """Relay until SIGTERM or SIGINT, then drain; returns the exit status. Raises StartError."""
    listeners = open_listeners(settings)
    try:
        relay = Relay(settings, listeners)
        port = open_admin_port(admin, hosts=admin_hosts, backlog=128)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    with port:
        return await run_until_signal(functools.partial(_serve, relay, port), grace=drain)


async def _serve(relay: Relay, port: AdminPort, stopping: trio.Event) -> None:
    view = View(
        relay.core.settings,
        backends=[(listener.endpoint, listener.backend) for listener in relay.listeners],
        counters=relay.core.counters,
        limit=lambda: relay.core.limit,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_relay_admin, view, port, stopping)
        log_routes(view)
        freeze_loaded_objects()
        core = relay.core
        log.info("limits", connections=core.limit, each_client=core.clients.most_each)
        await relay.serve(stopping=stopping)
        nursery.cancel_scope.cancel()


def log_routes(view: View) -> None:
    """Log one line for each route."""
    for (endpoint, backend), route in zip(view.backends, view.settings.routes, strict=True):
        log.info(
            "relaying",
            listen=str(endpoint),
            backend=str(backend.destination),
            proxy_protocol=str(view.settings.protocol_of(route)),
        )


def freeze_loaded_objects() -> None:
    """Exclude all objects that exist now from garbage collection, which would pause every connection."""
    gc.collect()
    gc.freeze()
