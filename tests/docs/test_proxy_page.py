"""The route Services that the guide shows give the routes that it tells of."""

from __future__ import annotations

import re

import msgspec

from docs.build import HERE
from proxy.backends.hold_back import HOLD
from proxy.relay.limits import routes_within
from proxy.route_services.changes import FIRST_RETRY, LAST_RETRY
from proxy.tap.ended import Ended, Ending
from proxy.tap.tap import QUEUE
from sidecar.admin.live_answers import MAXIMUM_LIVE
from sidecar.kubernetes import route_services
from sidecar.kubernetes.relay_routes import MOST_ROUTES, RouteService, find_relay_routes
from sidecar.kubernetes.route_services import HEADERS, parse_endpoint_headers, parse_headers, parse_port_backends
from tests.docs.manifests import manifests_of

PAGE = (HERE / "pages" / "proxy.md").read_text(encoding="utf-8")


def test_the_services_of_the_guide_are_relayed() -> None:
    shown = [one for one in manifests_of("proxy") if one["kind"] == "Service"]
    services = {
        f"{one['metadata']['namespace']}/{one['metadata']['name']}": msgspec.convert(one, RouteService) for one in shown
    }
    found = find_relay_routes(services)
    assert found.faults == {}
    assert [str(one) for one in found.routes] == [
        "20022=git/gitea-ssh:22,none",
        "21883=mqtt/broker:1883,v1",
        "28883=mqtt/broker:8883,v2",
    ]


def test_every_annotation_has_its_row_and_the_values_there_are_values() -> None:
    rows = dict(re.findall(r"^\| `(switchback\.dev/[a-z-]+)` \| (.*) \|$", PAGE, re.MULTILINE))
    assert set(rows) == {
        route_services.RELAY_TO,
        route_services.PORT_BACKENDS,
        route_services.PROXY_PROTOCOL,
        route_services.ENDPOINT_HEADERS,
        route_services.FOR,
        route_services.RELEASED,
    }
    values = {name: re.findall(r"`([^`]*)`", value) for name, value in rows.items()}
    example = next(value for value in values[route_services.PORT_BACKENDS] if value.startswith("22="))
    assert parse_port_backends(example) == {22: ("git", "gitea-ssh")}
    for header in HEADERS:
        assert header in values[route_services.PROXY_PROTOCOL]
    assert parse_headers(values[route_services.PROXY_PROTOCOL][-1]).of(22) == "none"
    assert len(parse_endpoint_headers(values[route_services.ENDPOINT_HEADERS][-1])) == 2


def test_the_figures_of_the_guide_are_those_of_the_program() -> None:
    assert f"no connection for {HOLD:.0f} seconds" in " ".join(PAGE.split())
    assert f"after {FIRST_RETRY:.0f} second, then less and less often, every {LAST_RETRY:.0f} seconds" in " ".join(
        PAGE.split()
    )
    assert f"at most {MOST_ROUTES:,} such routes" in PAGE
    assert routes_within(12_000) == MOST_ROUTES > routes_within(11_999)


def test_every_key_of_a_connection_has_its_row() -> None:
    part = PAGE.partition("| key | value |")[2].partition("\n\n")[0]
    cells = " ".join(re.findall(r"^\| (`.*?) \| ", part, re.MULTILINE))
    assert re.findall(r"`([a-z_]+)`", cells) == list(Ended.__struct_fields__)


def test_every_end_of_a_connection_has_its_row() -> None:
    part = PAGE.partition("| `end` | meaning |")[2].partition("\n\n")[0]
    cells = " ".join(re.findall(r"^\| (`.*?) \| ", part, re.MULTILINE))
    assert re.findall(r"`([a-z -]+)`", cells) == list(Ending)


def test_the_bounds_of_the_tap_are_those_of_the_program() -> None:
    assert f"Up to {QUEUE:,} connections wait" in PAGE
    assert f"At most {MAXIMUM_LIVE} listeners" in PAGE
