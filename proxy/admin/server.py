"""The admin port of a relay, of one process or of several workers.

The law: the admin port only reads; the program fills the View that it shows. Tested in tests/proxy/test_cli.py and
tests/proxy/serve/test_supervisor.py, with the real command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio
from prometheus_client.registry import Collector

from proxy.admin.metrics import RelayCollector
from proxy.admin.page import CHARTS, RelayStatus, RouteStatus, read_counters, relay_facts, render_page
from proxy.admin.readiness import check_backends
from proxy.backends.backend import Backend
from proxy.header.addresses import LOCAL
from proxy.header.protocol import formatter
from proxy.relay.counters import Counters
from proxy.settings import Settings
from sidecar.admin.page.history import History
from sidecar.admin.page.live import live_route
from sidecar.admin.port import AdminPort
from sidecar.admin.server import Readiness
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class View:
    """The state of a relay that the admin port shows."""

    settings: Settings
    backends: Sequence[tuple[Endpoint, Backend]]
    """The listening endpoint and the backend of each route."""
    counters: Counters
    limit: Callable[[], int]
    """The connection limit."""
    fault: Callable[[], str | None] = lambda: None
    """Why the relay is not ready, apart from its backends."""
    collectors: Sequence[Collector] = ()
    """More metrics than those of the counters."""


async def serve_relay_admin(
    view: View,
    port: AdminPort,
    stopping: trio.Event,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve health, readiness, metrics and the page until cancelled; closes the listeners."""
    settings = view.settings
    greetings = [
        (backend, formatter(settings.protocol_of(route), checksum=settings.crc32c)(LOCAL))
        for (_, backend), route in zip(view.backends, settings.routes, strict=True)
    ]

    async def readiness() -> Readiness:
        fault = "stopping" if stopping.is_set() else view.fault()
        if fault is not None:
            return Readiness(ready=False, reason=fault)
        return await check_backends(greetings)

    history = History(CHARTS)

    def look() -> RelayStatus:
        return _look(view, history, "stopping" if stopping.is_set() else view.fault() or "")

    await port.serve(
        RelayCollector(view.counters),
        *view.collectors,
        readiness=readiness,
        page=lambda: render_page(look()),
        routes=live_route(history, lambda: relay_facts(look())),
        samples=(history, lambda: read_counters(view.counters)),
        task_status=task_status,
    )


def _look(view: View, history: History, fault: str) -> RelayStatus:
    routes = [
        RouteStatus(
            listen=str(endpoint),
            backend=str(backend.destination),
            protocol=str(view.settings.protocol_of(route)),
            addresses=[str(Endpoint(address.sockaddr[0], address.sockaddr[1])) for address in backend.addresses],
            fault=_fault(backend),
        )
        for (endpoint, backend), route in zip(view.backends, view.settings.routes, strict=True)
    ]
    return RelayStatus(routes, view.counters, view.limit(), history, fault)


def _fault(backend: Backend) -> str:
    failure = backend.health.failure or backend.failure or (None if backend.addresses else backend.pending())
    return "" if failure is None else f"{failure.cause}: {failure.detail}"
