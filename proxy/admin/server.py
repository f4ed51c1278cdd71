"""The admin port of a relay, of one process or of several workers.

The law: the admin port only reads; the program fills the View that it shows. Tested in tests/proxy/test_cli.py and
tests/proxy/serve/test_supervisor.py, with the real command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio
from prometheus_client.registry import Collector

from proxy.admin.metrics import RelayCollector, RouteCollector
from proxy.admin.page import CHARTS, RelayStatus, RouteStatus, read_counters, relay_facts, render_page
from proxy.admin.readiness import ReadinessLog, RouteProbe, SharedCheck, check_routes
from proxy.admin.route_readiness import RouteState, judge_routes
from proxy.backends.backend import Backend
from proxy.backends.health import Failure
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
    probes = [
        RouteProbe(listen, backend, formatter(settings.protocol_of(route), checksum=settings.crc32c)(LOCAL))
        for (listen, backend), route in zip(view.backends, settings.routes, strict=True)
    ]
    changes = ReadinessLog()

    async def readiness() -> Readiness:
        fault = "stopping" if stopping.is_set() else view.fault()
        if fault is not None:
            return Readiness(ready=False, reason=fault)
        return await shared.result()

    async def check() -> Readiness:
        checked = await check_routes(probes, settings.ready_when)
        changes.note(checked)
        return checked

    shared = SharedCheck(check)

    history = History(CHARTS)

    def look() -> RelayStatus:
        return _look(view, history, "stopping" if stopping.is_set() else view.fault() or "")

    await port.serve(
        RelayCollector(view.counters),
        RouteCollector(lambda: _states(view)),
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
            fault=_describe(_failure(backend)),
        )
        for (endpoint, backend), route in zip(view.backends, view.settings.routes, strict=True)
    ]
    ready = judge_routes(_states(view), view.settings.ready_when).ready
    return RelayStatus(routes, view.counters, view.limit(), history, fault, ready)


def _states(view: View) -> list[RouteState]:
    """The routes by the last connections and probes."""
    return [RouteState(listen, str(backend.destination), _failure(backend)) for listen, backend in view.backends]


def _failure(backend: Backend) -> Failure | None:
    return backend.health.failure or backend.failure or (None if backend.addresses else backend.pending())


def _describe(failure: Failure | None) -> str:
    return "" if failure is None else f"{failure.cause}: {failure.detail}"
