"""The relay in one process: start and stop of its listeners and its admin port.

The law: other modules make the parts; this module decides the order in which they start and stop. Tested in
tests/proxy/test_cli.py, with the real command.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
from collections.abc import Sequence

import structlog
import trio
from prometheus_client.registry import Collector

from proxy.admin.server import View, serve_relay_admin
from proxy.relay.relay import Relay, open_listeners
from proxy.route_services.ports import LiveRoute
from proxy.route_services.starting import beside, make_followed_routes, reserve
from proxy.serve.access_log import access_log
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
        # Around the relay: the lines of its last connections are written too.
        async with access_log(relay.core.tap, on=settings.access_log) as collectors:
            return await run_until_signal(functools.partial(_serve, relay, port, collectors), grace=drain)


async def _serve(relay: Relay, port: AdminPort, collectors: Sequence[Collector], stopping: trio.Event) -> None:
    settings = relay.core.settings
    endpoints = [listener.endpoint for listener in relay.listeners]
    services = reserve(settings.route_services, endpoints, port.endpoint)
    routes = make_followed_routes(services, relay, beside(endpoints, relay.backends.values()))
    view = View(
        settings,
        fixed_routes(relay),
        counters=relay.core.counters,
        limit=lambda: relay.core.limit,
        tap=relay.core.tap,
        collectors=collectors,
        table=None if routes is None else routes.table,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_relay_admin, view, port, stopping)
        log_routes(view)
        freeze_loaded_objects()
        core = relay.core
        log.info("limits", connections=core.limit, each_client=core.clients.most_each)
        async with trio.open_nursery() as relaying:
            await relaying.start(functools.partial(relay.serve, stopping=stopping))
            if routes is not None:
                # In the outer nursery: backends are followed until the last connection has ended.
                await nursery.start(routes.run, settings, stopping)
        nursery.cancel_scope.cancel()


def fixed_routes(relay: Relay) -> list[LiveRoute]:
    """The routes of the flags, with the ports on which they listen."""
    return [
        LiveRoute(dataclasses.replace(route, listen=listener.endpoint), listener.backend)
        for listener, route in zip(relay.listeners, relay.core.settings.routes, strict=True)
    ]


def log_routes(view: View) -> None:
    """Log one line for each route of the flags."""
    for one in view.fixed:
        log.info(
            "relaying",
            listen=str(one.route.listen),
            backend=str(one.route.backend),
            proxy_protocol=str(view.settings.protocol_of(one.route)),
        )


def freeze_loaded_objects() -> None:
    """Exclude all objects that exist now from garbage collection, which would pause every connection."""
    gc.collect()
    gc.freeze()
