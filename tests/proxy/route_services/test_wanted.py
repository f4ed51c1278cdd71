"""From the routes of Services to the relay's own."""

from __future__ import annotations

import pytest

from proxy.header.protocol import ProxyProtocol
from proxy.route_services.wanted import holds_back, reserved_ports, wanted_route
from proxy.routes import ServicePort
from sidecar.kubernetes.relay_routes import RelayRoute
from sidecar.kubernetes.route_services import HEADERS
from sidecar.values.endpoints import Endpoint
from tests.proxy.route_services.made import route

V1, NONE = ProxyProtocol.V1, ProxyProtocol.NONE


def test_a_route_listens_everywhere_and_states_the_port_of_the_service() -> None:
    found = RelayRoute(
        20443, "web", "shop", 443, "v2", {"192.0.2.2": "none", "192.0.2.1": "v1"}, ("switchback/a", "switchback/b")
    )
    made = wanted_route(found)
    assert made.listen == Endpoint("::", 20443)
    assert made.backend == ServicePort("web", "shop", 443)
    assert made.proxy_protocol is ProxyProtocol.V2
    assert made.stated_port == 443
    assert made.exceptions == (("192.0.2.1", V1), ("192.0.2.2", NONE))
    assert made.services == ("switchback/a", "switchback/b")


@pytest.mark.parametrize("header", HEADERS)
def test_every_header_of_an_annotation_is_one_of_the_relay(header: str) -> None:
    made = wanted_route(RelayRoute(20443, "web", "shop", 443, header))
    assert str(made.proxy_protocol) == header
    assert holds_back(made) is (header in {"v1", "v2"})


def test_a_route_of_a_flag_with_the_header_of_all_routes_is_not_held_back() -> None:
    assert not holds_back(route(1, proxy_protocol=None))


@pytest.mark.parametrize(
    ("admin", "expected"),
    [
        pytest.param(None, {443: "--route has", 80: "--route has"}, id="no admin port"),
        pytest.param(
            Endpoint("127.0.0.1", 8082), {443: "--route has", 80: "--route has", 8082: "--admin has"}, id="admin port"
        ),
    ],
)
def test_ports_of_flags_are_no_services(admin: Endpoint | None, expected: dict[int, str]) -> None:
    assert reserved_ports([Endpoint("::", 443), Endpoint("192.0.2.1", 80)], admin) == expected
