"""The relay as a service: beside the byte path its admin port, its metrics and its end.

The law: what is put together here is made elsewhere; this is the order in which it starts and stops.
"""

from __future__ import annotations

import functools
import gc
import socket
from collections.abc import Sequence

import structlog
import trio
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from proxy.backend import Backend
from proxy.header import LOCAL
from proxy.metrics import RelayCollector
from proxy.page import RouteStatus, render_page
from proxy.probe import check_backends
from proxy.relay import Relay, open_listeners
from proxy.settings import Settings
from sidecar.admin import Readiness, serve_admin
from sidecar.endpoints import Endpoint
from sidecar.listeners import listen_tcp
from sidecar.shutdown import run_until_signal

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def serve(settings: Settings, admin: Endpoint | None, drain: float) -> int:
    """Relay until SIGTERM or SIGINT and drain; gives the exit status. Raises StartError."""
    listeners = open_listeners(settings)
    try:
        relay = Relay(settings, listeners)
        admin_listeners = [] if admin is None else [listen_tcp(admin, flag="--admin", backlog=128)]
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return await run_until_signal(functools.partial(_serve, relay, admin_listeners), grace=drain)


async def _serve(relay: Relay, admin_listeners: Sequence[socket.socket], stopping: trio.Event) -> None:
    async with trio.open_nursery() as nursery:
        if admin_listeners:
            await nursery.start(functools.partial(_serve_admin, relay, admin_listeners, stopping))
        for listener, route in zip(relay.listeners, relay.settings.routes, strict=True):
            log.info(
                "relaying",
                listen=str(listener.endpoint),
                backend=str(listener.target.destination),
                proxy_protocol=str(relay.settings.protocol_of(route)),
            )
        # What is loaded now lives to the end: a search for garbage among it would hold every connection up.
        gc.collect()
        gc.freeze()
        log.info("limits", connections=relay.limit, each_client=relay.clients.most_each or relay.limit)
        await relay.serve(stopping=stopping)
        nursery.cancel_scope.cancel()


async def _serve_admin(
    relay: Relay, listeners: Sequence[socket.socket], stopping: trio.Event, *, task_status: trio.TaskStatus[None]
) -> None:
    settings = relay.settings
    greetings = [
        (listener.target, settings.formatter_of(route)(LOCAL))
        for listener, route in zip(relay.listeners, settings.routes, strict=True)
    ]
    registry = CollectorRegistry()
    registry.register(RelayCollector(relay.counters))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)

    async def readiness() -> Readiness:
        if stopping.is_set():
            return Readiness(ready=False, reason="stopping")
        return await check_backends(greetings)

    await serve_admin(
        listeners,
        readiness=readiness,
        registry=registry,
        page=functools.partial(_page, relay),
        task_status=task_status,
    )


def _page(relay: Relay) -> str:
    return render_page(
        [
            RouteStatus(
                listen=str(listener.endpoint),
                backend=str(listener.target.destination),
                protocol=str(relay.settings.protocol_of(route)),
                addresses=[
                    str(Endpoint(address.target[0], address.target[1])) for address in listener.target.addresses
                ],
                state=_state(listener.target),
            )
            for listener, route in zip(relay.listeners, relay.settings.routes, strict=True)
        ],
        active=relay.counters.active,
        limit=relay.limit,
        total=relay.counters.connections,
    )


def _state(backend: Backend) -> str:
    failure = backend.health.failure or backend.failure or (None if backend.addresses else backend.pending())
    return "no fault seen" if failure is None else f"{failure.cause}: {failure.detail}"
