"""Keeps backends up to date: names are looked up again when their answer has aged, Services are watched.

The law: a thin shell of tasks that end with their nursery; what they learn goes into Backend.take, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import structlog
import trio

from proxy.backends.backend import Backend, address_of, is_literal
from proxy.backends.health import Failure
from proxy.backends.name_resolver import Found, LookUp, NameResolver
from proxy.routes import ServicePort
from proxy.settings import Settings
from sidecar.host_port import HostPort

log: structlog.stdlib.BoundLogger = structlog.get_logger()

RETRY_SECONDS: Final = 1.0
"""Between two look-ups at least."""
DNSPROXY_SECONDS: Final = 300.0
"""Between two questions whether a name is answered by our own dnsproxy."""


async def follow_backends(
    backends: Iterable[Backend],
    settings: Settings,
    *,
    look_up: LookUp | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Keep backends up to date until cancelled. Raises StartError where the cluster of a Service is not to be found."""
    backends = [backend for backend in backends if not is_literal(backend.destination)]
    services = [backend for backend in backends if isinstance(backend.destination, ServicePort)]
    resolver = NameResolver(settings.resolv_conf)
    async with trio.open_nursery() as nursery:
        for backend in backends:
            if isinstance(backend.destination, HostPort):
                nursery.start_soon(keep_resolved, backend, look_up or resolver.look_up)
                if look_up is None:
                    nursery.start_soon(watch_for_dnsproxy, backend.destination, resolver)
        if services:
            # Here and not above: who relays to names and addresses needs no client of the API server.
            from proxy.backends.service_watch import follow_services  # noqa: PLC0415

            await nursery.start(partial(follow_services, services, settings))
        task_status.started()


async def keep_resolved(backend: Backend, look_up: LookUp) -> None:
    """Look the name of a backend up again and again until cancelled."""
    destination = backend.destination
    assert isinstance(destination, HostPort)  # noqa: S101  # the caller chose it by this
    while True:
        found = await look_up(destination.host)
        backend.outdated = trio.Event()
        backend.take(
            found if isinstance(found, Failure) else [address_of(one, destination.port) for one in found.addresses]
        )
        fresh = found.seconds if isinstance(found, Found) else 0.0
        await trio.sleep(RETRY_SECONDS)
        with trio.move_on_after(max(0.0, fresh - RETRY_SECONDS)):
            await backend.outdated.wait()


async def watch_for_dnsproxy(destination: HostPort, resolver: NameResolver) -> None:
    """Say so when a backend's name is answered by our own dnsproxy.

    Its table may point that name at this very relay; and while dnsproxy is away, nobody would know the backend.
    """
    warned = False
    while True:
        asks = await resolver.asks_dnsproxy(destination.host)
        if asks and not warned:
            log.warning(
                "the backend's name is resolved by our own dnsproxy; give the node's resolver with --resolv-conf, or "
                "name a Service",
                backend=str(destination),
                resolv_conf=str(resolver.resolv_conf),
            )
        warned = asks
        await trio.sleep(DNSPROXY_SECONDS)
