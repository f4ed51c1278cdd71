"""Where connections to a port of a Service end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dnsproxy.doctor.facts.model import Port, Service
from dnsproxy.operate.observe.endpoints import endpoints_of, leaving_of, ready_pods
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.values.endpoints import Endpoint

SERVICE = Service(
    "web/nginx", cluster_ips=("10.96.1.1", "2001:db8:96::1"), ports=(Port(80, "http"), Port(443, "https"))
)
READY = {"ready": True}
LEAVING = {"ready": False, "serving": True, "terminating": True}
DOWN = {"ready": False}


def part(
    *addresses: str, conditions: dict[str, bool] | None = None, family: str = "IPv4", **ports: int | None
) -> EndpointSlice:
    body: dict[str, Any] = {
        "metadata": {"name": "a", "labels": {"kubernetes.io/service-name": "nginx"}},
        "addressType": family,
        "ports": [{"name": name, "port": port, "protocol": "TCP"} for name, port in ports.items()],
        "endpoints": [
            {
                "addresses": [one],
                "conditions": conditions or READY,
                "targetRef": {"kind": "Pod", "name": f"pod-{one[-1]}"},
            }
            for one in addresses
        ],
    }
    return msgspec.convert(body, EndpointSlice)


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([], {80: (), 443: ()}, id="none"),
        pytest.param([part("10.0.0.1", http=8080)], {80: (Endpoint("10.0.0.1", 8080),), 443: ()}, id="one port"),
        pytest.param(
            [part("10.0.0.2", "10.0.0.1", https=8443)],
            {80: (), 443: (Endpoint("10.0.0.1", 8443), Endpoint("10.0.0.2", 8443))},
            id="sorted",
        ),
        pytest.param(
            [part("10.0.0.1", https=8443), part("2001:DB8::1", family="IPv6", https=8443)],
            {80: (), 443: (Endpoint("10.0.0.1", 8443), Endpoint("2001:db8::1", 8443))},
            id="both families",
        ),
        pytest.param(
            [part("10.0.0.1", https=8443), part("10.0.0.2", conditions=DOWN, https=8443)],
            {80: (), 443: (Endpoint("10.0.0.1", 8443),)},
            id="one is not ready",
        ),
        pytest.param(
            [part("10.0.0.1", https=8443), part("10.0.0.2", conditions=LEAVING, https=8443)],
            {80: (), 443: (Endpoint("10.0.0.1", 8443),)},
            id="one leaves",
        ),
        pytest.param(
            [part("10.0.0.2", conditions=LEAVING, https=8443)],
            {80: (), 443: (Endpoint("10.0.0.2", 8443),)},
            id="all leave",
        ),
        pytest.param([part("lb.example.org", family="FQDN", https=8443)], {80: (), 443: ()}, id="a name"),
        pytest.param([part("10.0.0.256", https=8443)], {80: (), 443: ()}, id="no address"),
        pytest.param([part("10.0.0.1", https=None)], {80: (), 443: ()}, id="no number"),
        pytest.param(
            [part("192.192.192.192", other=9999)],
            {
                80: (Endpoint("10.96.1.1", 80), Endpoint("2001:db8:96::1", 80)),
                443: (Endpoint("10.96.1.1", 443), Endpoint("2001:db8:96::1", 443)),
            },
            id="a placeholder: the data plane serves it",
        ),
    ],
)
def test_each_port_has_the_endpoints_that_get_new_connections(
    slices: list[EndpointSlice], expected: dict[int, tuple[Endpoint, ...]]
) -> None:
    assert endpoints_of(SERVICE, slices) == expected


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([], {}, id="none"),
        pytest.param(
            [part("10.0.0.1", https=8443), part("10.0.0.2", conditions=LEAVING, https=8443)],
            {443: (Endpoint("10.0.0.2", 8443),)},
            id="one leaves",
        ),
        pytest.param([part("10.0.0.2", conditions=LEAVING, https=8443)], {}, id="all leave: they get new connections"),
        pytest.param(
            [part("10.0.0.1", https=8443), part("10.0.0.2", conditions=DOWN, https=8443)], {443: ()}, id="down"
        ),
        pytest.param(
            [part("10.0.0.1", https=8443), part("10.0.0.1", conditions=LEAVING, https=8443)],
            {443: ()},
            id="two slices disagree about one",
        ),
    ],
)
def test_terminating_endpoints_that_serve_are_known_beside_ready_ones(
    slices: list[EndpointSlice], expected: dict[int, tuple[Endpoint, ...]]
) -> None:
    assert leaving_of(SERVICE, slices) == expected


def test_a_pod_of_two_families_counts_once() -> None:
    slices = [part("2001:db8::1", family="IPv6", a=1), part("10.0.0.1", a=1), part("10.0.0.2", conditions=LEAVING, a=1)]
    assert ready_pods(slices) == ("10.0.0.1",)
