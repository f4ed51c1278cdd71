"""The status page: routes, connections and backends, for a person with a browser.

The law: pure. Everything that is updated live is a named Fact, in one list for the page and its script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from proxy.relay.counters import Counters
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
    """The last failure to reach the backend; empty if a connection has succeeded since."""


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """Everything that the page shows, at one moment."""

    routes: Sequence[RouteStatus]
    counters: Counters
    limit: int
    history: History
    fault: str = ""
    """Why the relay itself is not ready; empty if it is."""
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
    for number, route in enumerate(status.routes):
        yield from _route_facts(number, route)


def render_page(status: RelayStatus) -> str:
    """The page as HTML."""
    counters = status.counters
    body = joined(
        (
            facts(_tiles(status), kind="tiles"),
            section("The last five minutes", format_charts(status.history), key="rates"),
            section("Routes", _routes(status.routes), key="routes"),
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
            *map(value, _route_facts(number, route)),
        ]
        for number, route in enumerate(routes)
    ]
    headings = ("Listens on", "Backend", "PROXY protocol", "Addresses", "State")
    return table("Routes and their backends", headings, rows, empty="None.")


def _route_facts(number: int, route: RouteStatus) -> Iterator[Fact]:
    yield Fact("Addresses", ", ".join(route.addresses) or "none yet", live=f"route-{number}-addresses")
    level = Level.BAD if route.fault else Level.OK
    yield Fact("State", route.fault or "no failure", level, f"route-{number}")
