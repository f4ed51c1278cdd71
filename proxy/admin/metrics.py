"""The counters of a relay as metrics.

The law: pure. Only this module chooses names and labels; no label holds a hostname or the address of a client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.admin.route_readiness import RouteState
from proxy.relay.counters import Counters


class RelayCollector(Collector):
    """Reads the counters at each scrape; for a CollectorRegistry."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def describe(self) -> list[Metric]:
        """No names in advance: to learn them, the registry would collect once."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current metric families."""
        counters = self._counters
        yield CounterMetricFamily("proxy_connections", "Connections accepted from clients.", value=counters.connections)
        yield GaugeMetricFamily("proxy_connections_active", "Open connections.", value=counters.active)
        yield CounterMetricFamily(
            "proxy_connections_refused",
            "Connections refused, too many from one client.",
            value=counters.refused,
        )
        yield CounterMetricFamily(
            "proxy_headers_refused",
            "Connections refused, a PROXY header of the client's own on a route without headers, or of another client.",
            value=counters.headers_refused,
        )
        octets = CounterMetricFamily("proxy_bytes", "Relayed payload in bytes.", labels=["direction"])
        octets.add_metric(["to_backend"], counters.octets_to_backend)
        octets.add_metric(["to_client"], counters.octets_to_client)
        yield octets
        errors = CounterMetricFamily(
            "proxy_backend_errors", "Connections without a backend, by cause.", labels=["cause"]
        )
        for cause, count in counters.backend_errors.items():
            errors.add_metric([str(cause)], count)
        yield errors


class RouteCollector(Collector):
    """Reads the state of the routes at each scrape; for a CollectorRegistry."""

    def __init__(self, states: Callable[[], Iterable[RouteState]]) -> None:
        self._states = states

    def describe(self) -> list[Metric]:
        """No names in advance, as in RelayCollector."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current metric families."""
        up = GaugeMetricFamily(
            "proxy_route_up",
            "Whether the last connection or probe reached the backend of the route that listens here.",
            labels=["listen"],
        )
        for one in self._states():
            up.add_metric([str(one.listen)], float(one.works))
        yield up


@dataclass(frozen=True, slots=True)
class RouteCounts:
    """How many routes are open, by where they come from, and how many things are wrong with route Services."""

    from_flags: int = 0
    from_services: int = 0
    faults: int = 0


class RouteCountCollector(Collector):
    """Counts the routes at each scrape; for a CollectorRegistry."""

    def __init__(self, count: Callable[[], RouteCounts]) -> None:
        self._count = count

    def describe(self) -> list[Metric]:
        """No names in advance, as in RelayCollector."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current metric families."""
        counts = self._count()
        routes = GaugeMetricFamily("proxy_routes", "Routes whose port is open, by source.", labels=["source"])
        routes.add_metric(["flag"], counts.from_flags)
        routes.add_metric(["service"], counts.from_services)
        yield routes
        yield GaugeMetricFamily(
            "proxy_route_faults", "Ports and annotations of Services that are not relayed.", value=counts.faults
        )
