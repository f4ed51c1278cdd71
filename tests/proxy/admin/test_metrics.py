"""The metrics of the counters in a scrape."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from proxy.admin.metrics import RelayCollector, RouteCollector, RouteCountCollector, RouteCounts
from proxy.admin.route_readiness import RouteState
from proxy.backends.health import Cause, Failure
from proxy.relay.counters import Counters
from sidecar.values.endpoints import Endpoint


def scrape(counters: Counters) -> dict[str, float]:
    return scrape_of(RelayCollector(counters))


def scrape_of(collector: Collector) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(collector)
    lines = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_a_scrape_has_the_current_counts() -> None:
    counters = Counters(
        connections=7, active=2, refused=5, headers_refused=6, octets_to_backend=100, octets_to_client=3000
    )
    counters.backend_errors[Cause.TIMEOUT] += 4
    shown = scrape(counters)
    assert shown["proxy_connections_total"] == 7
    assert shown["proxy_connections_active"] == 2
    assert shown["proxy_connections_refused_total"] == 5
    assert shown["proxy_headers_refused_total"] == 6
    assert shown['proxy_bytes_total{direction="to_backend"}'] == 100
    assert shown['proxy_bytes_total{direction="to_client"}'] == 3000
    assert shown['proxy_backend_errors_total{cause="timeout"}'] == 4


def test_every_cause_is_there_from_the_start() -> None:
    shown = scrape(Counters())
    assert {f'proxy_backend_errors_total{{cause="{cause}"}}' for cause in Cause} <= shown.keys()
    assert set(shown.values()) == {0.0}


def test_each_route_is_up_or_down_and_no_backend_is_named() -> None:
    states = [
        RouteState(Endpoint("::", 8443), "ingress.example.org:443"),
        RouteState(Endpoint("192.0.2.1", 2222), "git.example.org:22", Failure(Cause.TIMEOUT, "x")),
    ]
    shown = scrape_of(RouteCollector(lambda: states))
    assert shown == {'proxy_route_up{listen="[::]:8443"}': 1, 'proxy_route_up{listen="192.0.2.1:2222"}': 0}


def test_a_route_whose_port_is_not_open_is_down() -> None:
    states = [RouteState(Endpoint("::", 8443), "service:web/shop:443", problem="the address is in use")]
    assert scrape_of(RouteCollector(lambda: states)) == {'proxy_route_up{listen="[::]:8443"}': 0}


def test_routes_are_counted_by_their_source_and_no_name_is_a_label() -> None:
    shown = scrape_of(RouteCountCollector(lambda: RouteCounts(1, 2, 3)))
    assert shown == {'proxy_routes{source="flag"}': 1, 'proxy_routes{source="service"}': 2, "proxy_route_faults": 3}
