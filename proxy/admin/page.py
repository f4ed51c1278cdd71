"""The status page: routes, connections and backends, for a person with a browser.

The law: pure. Everything that is updated live is a named Fact, in one list for the page and its script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from proxy.relay.counters import Counters
from proxy.routes import ROUTE_FLAG
from sidecar.admin.page.charts import format_charts
from sidecar.admin.page.document import Fact, Frame, Level, document, facts, section, table, text, value
from sidecar.admin.page.history import Chart, History, level, rate
from sidecar.admin.page.markup import html, joined

_KILOBYTES: Final = 1_024

CHARTS: Final = (
    Chart(
        "connections",
        "Connections",
        "a second",
        (rate("taken", "accepted", "connections"), rate("failed", "without a backend", "errors")),
    ),
    Chart("open", "Open connections", "at a time", (level("active", "open", "active"),)),
    Chart(
        "payload",
        "Payload",
        "KiB a second",
        (rate("to-backend", "to backends", "to backend"), rate("to-client", "to clients", "to client")),
    ),
)


@dataclass(frozen=True, slots=True)
class RouteStatus:
    """One row of the page."""

    listen: str
    backend: str
    protocol: str
    addresses: Sequence[str]
    fault: str = ""
    """The last failure to reach the backend, or why its port is not open; empty if a connection has succeeded since."""
    services: Sequence[str] = ()
    """The Services that ask for it; empty for a route from a flag."""


@dataclass(frozen=True, slots=True)
class ServicesStatus:
    """The Services that may be routes."""

    state: str
    """What their watch does."""
    is_lost: bool
    """Whether the watch fails; the last routes stay."""
    faults: Mapping[str, Sequence[str]]
    """By Service: what is not relayed, and why."""


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """Everything that the page shows, at one moment."""

    routes: Sequence[RouteStatus]
    counters: Counters
    limit: int
    history: History
    fault: str = ""
    """Why the relay itself is not ready; empty if it is."""
    services: ServicesStatus | None = None
    """None: no Service is a route."""
    ready: bool = True
    """Whether the routes that decide reach their backends."""


def read_counters(counters: Counters) -> Mapping[str, float]:
    """One sample, for History.take."""
    return {
        "connections": counters.connections,
        "errors": sum(counters.backend_errors.values()),
        "active": counters.active,
        "to backend": counters.octets_to_backend / _KILOBYTES,
        "to client": counters.octets_to_client / _KILOBYTES,
    }


def relay_facts(status: RelayStatus) -> Iterator[Fact]:
    """Everything on the page that is updated live."""
    yield _state(status)
    yield from _tiles(status)
    yield from _error_facts(status.counters)
    for key, route in _keyed(status.routes):
        yield from _route_facts(key, route)
    if status.services is not None:
        yield from _services_facts(status.services)


def render_page(status: RelayStatus) -> str:
    """The page as HTML."""
    counters = status.counters
    body = joined(
        (
            facts(_tiles(status), kind="tiles"),
            section("The last five minutes", format_charts(status.history), key="rates"),
            section("Routes", _routes(status.routes), key="routes"),
            *(() if status.services is None else (section("Services", _services(status.services), key="services"),)),
            section("Connections without a backend", facts(_error_facts(counters)), key="errors"),
        )
    )
    return document(Frame("proxy", (("./", "Overview"),), _state(status)), title="Relay", path="./", body=body)


def _state(status: RelayStatus) -> Fact:
    away = sum(1 for route in status.routes if route.fault)
    said, level = "relaying", Level.OK
    if away:
        doing, level = ("relaying", Level.WARN) if status.ready else ("not ready", Level.BAD)
        said = f"{doing}, {away} of {len(status.routes)} backends failing"
    if status.fault or (away and away == len(status.routes)):
        said, level = status.fault or "no backend is reachable", Level.BAD
    return Fact("State", said, level, "state")


def _tiles(status: RelayStatus) -> Iterator[Fact]:
    counters = status.counters
    full = bool(status.limit) and counters.active >= status.limit
    yield Fact("Open now", f"{counters.active:,}", Level.BAD if full else Level.PLAIN, "active")
    yield Fact("Limit", f"{status.limit:,}", live="limit")
    yield Fact("Since start", f"{counters.connections:,}", live="connections")
    refused = Level.WARN if counters.refused else Level.PLAIN
    yield Fact("Refused: too many from one client", f"{counters.refused:,}", refused, "refused")
    headers = Level.WARN if counters.headers_refused else Level.PLAIN
    yield Fact("Refused: a header of the client's own", f"{counters.headers_refused:,}", headers, "headers-refused")


def _error_facts(counters: Counters) -> Iterator[Fact]:
    for cause, count in counters.backend_errors.items():
        yield Fact(str(cause), f"{count:,}", Level.WARN if count else Level.PLAIN, f"error-{cause}")


def _routes(routes: Sequence[RouteStatus]) -> Markup:
    rows = [
        [
            text(route.listen),
            html("{}", route.backend),
            html("{}", route.protocol),
            text(", ".join(route.services) or ROUTE_FLAG),
            *map(value, _route_facts(key, route)),
        ]
        for key, route in _keyed(routes)
    ]
    headings = ("Listens on", "Backend", "PROXY protocol", "From", "Addresses", "State")
    return table("Routes and their backends", headings, rows, empty="None.")


def _keyed(routes: Sequence[RouteStatus]) -> Iterator[tuple[str, RouteStatus]]:
    """Each route with its key for updates: of one that may go, it must not become the key of another."""
    for number, route in enumerate(routes):
        yield f"service-route-{route.listen}" if route.services else f"route-{number}", route


def _route_facts(key: str, route: RouteStatus) -> Iterator[Fact]:
    yield Fact("Addresses", ", ".join(route.addresses) or "none yet", live=f"{key}-addresses")
    level = Level.BAD if route.fault else Level.OK
    yield Fact("State", route.fault or "no failure", level, key)


def _services_facts(services: ServicesStatus) -> Iterator[Fact]:
    yield Fact("Watch", services.state, Level.WARN if services.is_lost else Level.OK, "services-watch")
    count = sum(map(len, services.faults.values()))
    yield Fact("Faults", f"{count:,}", Level.WARN if count else Level.PLAIN, "services-faults")


def _services(services: ServicesStatus) -> Markup:
    rows = [[text(service), text(fault, Level.WARN)] for service, why in services.faults.items() for fault in why]
    shown = table("What is not relayed", ("Service", "Fault"), rows, empty="Everything that they ask for is relayed.")
    return joined((facts(_services_facts(services)), shown))
