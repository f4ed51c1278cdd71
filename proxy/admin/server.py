"""The admin port of a relay, of one process or of several workers.

The law: the admin port only reads; the program fills the View that it shows. Tested in tests/proxy/test_cli.py and
tests/proxy/serve/test_supervisor.py, with the real command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import trio
from prometheus_client.registry import Collector

from proxy.admin.metrics import RelayCollector, RouteCollector, RouteCountCollector, RouteCounts
from proxy.admin.page import (
    CHARTS,
    RelayStatus,
    RouteStatus,
    ServicesStatus,
    read_counters,
    relay_facts,
    render_page,
)
from proxy.admin.readiness import ReadinessLog, RouteProbe, SharedCheck, check_routes, known_failure
from proxy.admin.route_lines import format_lines
from proxy.admin.route_readiness import RouteState, judge_routes
from proxy.admin.tap_route import tap_route
from proxy.backends.health import Failure
from proxy.header.addresses import LOCAL
from proxy.header.protocol import formatter
from proxy.relay.counters import Counters
from proxy.route_services.ports import LiveRoute
from proxy.settings import Settings
from proxy.tap.tap import Tap
from sidecar.admin.page.history import History
from sidecar.admin.page.live import live_route
from sidecar.admin.port import AdminPort
from sidecar.admin.server import Readiness
from sidecar.values.endpoints import Endpoint

if TYPE_CHECKING:
    # At run time, a relay without --routes-from does not need the client of the API server.
    from proxy.route_services.table import RouteTable


@dataclass(frozen=True, slots=True)
class View:
    """The state of a relay that the admin port shows."""

    settings: Settings
    fixed: Sequence[LiveRoute]
    """The routes of the flags."""
    counters: Counters
    limit: Callable[[], int]
    """The connection limit."""
    tap: Tap
    """Where connections are noted as they end."""
    fault: Callable[[], str | None] = lambda: None
    """Why the relay is not ready, apart from its routes."""
    collectors: Sequence[Collector] = ()
    """More metrics than those of the counters."""
    table: RouteTable | None = None
    """The routes from Services; None without --routes-from."""

    @property
    def routes(self) -> list[LiveRoute]:
        """All routes."""
        return [*self.fixed, *(() if self.table is None else self.table.routes)]

    def why_not_ready(self) -> str | None:
        """Why the relay is not ready, apart from its backends."""
        return (None if self.table is None else self.table.waits()) or self.fault()


async def serve_relay_admin(
    view: View,
    port: AdminPort,
    stopping: trio.Event,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve health, readiness, metrics and the page until cancelled; closes the listeners."""
    changes = ReadinessLog()

    async def readiness() -> Readiness:
        fault = "stopping" if stopping.is_set() else view.why_not_ready()
        if fault is not None:
            return Readiness(ready=False, reason=fault)
        return await shared.result()

    async def check() -> Readiness:
        checked = await _check(view)
        changes.note(checked)
        return replace(checked, more=tuple(format_lines(_route_statuses(view), _services_status(view))))

    shared = SharedCheck(check)

    history = History(CHARTS)

    def look() -> RelayStatus:
        return _look(view, history, "stopping" if stopping.is_set() else view.why_not_ready() or "")

    await port.serve(
        RelayCollector(view.counters),
        RouteCollector(lambda: _states(view)),
        RouteCountCollector(lambda: _count(view)),
        *view.collectors,
        prefix="proxy",
        readiness=readiness,
        page=lambda: render_page(look()),
        routes={
            **live_route(history, lambda: relay_facts(look())),
            **tap_route(view.tap if view.settings.tap else None),
        },
        samples=(history, lambda: read_counters(view.counters)),
        task_status=task_status,
    )


async def _check(view: View) -> Readiness:
    settings, routes = view.settings, view.routes
    probes = [_probe_of(settings, one) for one in routes if one.backend is not None]
    closed = [_state_of(one) for one in routes if one.backend is None]
    return await check_routes(probes, settings.ready_when, closed=closed)


def _probe_of(settings: Settings, one: LiveRoute) -> RouteProbe:
    assert one.backend is not None  # noqa: S101  # the caller has checked it
    route = one.route
    return RouteProbe(
        route.listen,
        one.backend,
        formatter(settings.protocol_of(route), checksum=settings.crc32c)(LOCAL),
        {address: formatter(protocol, checksum=settings.crc32c)(LOCAL) for address, protocol in route.exceptions},
        one.problem,
    )


def _look(view: View, history: History, fault: str) -> RelayStatus:
    ready = judge_routes(_states(view), view.settings.ready_when).ready
    return RelayStatus(
        _route_statuses(view), view.counters, view.limit(), history, fault, _services_status(view), ready
    )


def _route_statuses(view: View) -> list[RouteStatus]:
    return [
        RouteStatus(
            listen=str(one.route.listen),
            backend=str(one.route.backend),
            protocol=_describe_protocol(view.settings, one),
            addresses=_addresses_of(one),
            fault=one.problem or _describe(_failure(one)),
            services=one.route.services,
        )
        for one in view.routes
    ]


def _describe_protocol(settings: Settings, one: LiveRoute) -> str:
    exceptions = [f"{protocol} at {address}" for address, protocol in one.route.exceptions]
    return "; ".join([str(settings.protocol_of(one.route)), *exceptions])


def _addresses_of(one: LiveRoute) -> list[str]:
    addresses = () if one.backend is None else one.backend.addresses
    return [str(Endpoint(address.sockaddr[0], address.sockaddr[1])) for address in addresses]


def _services_status(view: View) -> ServicesStatus | None:
    table = view.table
    if table is None:
        return None
    return ServicesStatus(table.status.describe(), table.status.error is not None, table.faults)


def _count(view: View) -> RouteCounts:
    table = view.table
    if table is None:
        return RouteCounts(len(view.fixed))
    opened = sum(one.backend is not None for one in table.routes)
    return RouteCounts(len(view.fixed), opened, sum(map(len, table.faults.values())))


def _states(view: View) -> list[RouteState]:
    """The routes by the last connections and probes."""
    return [_state_of(one) for one in view.routes]


def _state_of(one: LiveRoute) -> RouteState:
    return RouteState(one.route.listen, str(one.route.backend), _failure(one), one.problem)


def _failure(one: LiveRoute) -> Failure | None:
    return None if one.backend is None else known_failure(one.backend)


def _describe(failure: Failure | None) -> str:
    return "" if failure is None else f"{failure.cause}: {failure.detail}"
