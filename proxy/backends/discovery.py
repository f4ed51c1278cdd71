"""Keeps the addresses of backends current: names are resolved again when their TTL is over, Services are watched.

The law: tasks without decisions, which end with their nursery. Their results go into Backend.take, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import structlog
import trio

from proxy.backends.backend import Address, Backend, address_of, is_literal
from proxy.backends.health import Cause, Failure
from proxy.backends.name_resolver import Found, LookUp, NameResolver
from proxy.routes import ServicePort
from proxy.settings import Settings
from sidecar.values.host_port import HostPort

log: structlog.stdlib.BoundLogger = structlog.get_logger()

RETRY_SECONDS: Final = 1.0
"""At least, between two look-ups."""
DNSPROXY_SECONDS: Final = 300.0
"""Between two checks whether dnsproxy resolves the name of a backend."""


async def follow_backends(
    backends: Iterable[Backend],
    settings: Settings,
    *,
    look_up: LookUp | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Keep the backends current until cancelled. Raises StartError if the cluster of a Service cannot be found."""
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
            # Not at the top: without Services, no client of the API server is needed.
            from proxy.backends.service_watch import follow_services  # noqa: PLC0415

            await nursery.start(partial(follow_services, services, settings))
        task_status.started()


async def keep_resolved(backend: Backend, look_up: LookUp) -> None:
    """Resolve the name of a backend repeatedly until cancelled."""
    destination = backend.destination
    assert isinstance(destination, HostPort)  # noqa: S101  # the caller has checked it
    while True:
        found = await look_up(destination.host)
        backend.outdated = trio.Event()
        backend.take(found if isinstance(found, Failure) else _addresses_of(found, backend, destination.port))
        fresh = found.seconds if isinstance(found, Found) else 0.0
        await trio.sleep(RETRY_SECONDS)
        with trio.move_on_after(max(0.0, fresh - RETRY_SECONDS)):
            await backend.outdated.wait()


def _addresses_of(found: Found, backend: Backend, port: int) -> list[Address] | Failure:
    """The addresses of an answer; of a family for which the nameservers failed, the last ones stay in use."""
    addresses: list[Address] = []
    failure: Failure | None = None
    for one in found.addresses:
        try:
            addresses.append(address_of(one, port))
        except OSError as error:
            # A hosts file may state an address on an interface that is not there, or not yet.
            failure = Failure(Cause.DNS_ERROR, f"{one}: {error.strerror or error}")
    if found.one_family:
        families = {":" in one for one in found.addresses}
        addresses += [one for one in backend.addresses if (":" in one.host) not in families]
    return addresses if addresses or failure is None else failure


async def watch_for_dnsproxy(destination: HostPort, resolver: NameResolver) -> None:
    """Warn if dnsproxy resolves the name of a backend.

    Its table may map that name to this relay; and without dnsproxy, the backend could not be resolved.
    """
    warned = False
    while True:
        asks = await resolver.asks_dnsproxy(destination.host)
        if asks and not warned:
            log.warning(
                "dnsproxy resolves the backend's name; set --resolv-conf to a file with the node's nameservers, or "
                "name a Service",
                backend=str(destination),
                resolv_conf=str(resolver.resolv_conf),
            )
        warned = asks
        await trio.sleep(DNSPROXY_SECONDS)
