"""From route Services to the ports on which the relay listens, and the faults."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from sidecar.kubernetes.relay_routes import MOST_ROUTES, RelayRoute, RouteService, find_relay_routes

OWN = "switchback"
Services = dict[str, RouteService | Unreadable]


def service(
    name: str, *, to: str | None = "web/shop", created: str = "2026-11-01T00:00:00Z", **changes: Any
) -> Services:
    """A Service as the API server has it; `annotations` without their prefix."""
    annotations = {} if to is None else {"switchback.dev/relay-to": to}
    annotations |= {f"switchback.dev/{key}": value for key, value in changes.pop("annotations", {}).items()}
    ports = changes.pop("ports", [{"port": 443, "targetPort": 20443, "protocol": "TCP"}])
    metadata = {"name": name, "namespace": OWN, "creationTimestamp": created, "annotations": annotations}
    spec = {"selector": {"app.kubernetes.io/name": "relay"}, "ports": ports, **changes}
    return {f"{OWN}/{name}": msgspec.convert({"metadata": metadata, "spec": spec}, RouteService)}


def port(number: int, listen: Any = None, **changes: Any) -> dict[str, Any]:
    return {"port": number, **({} if listen is None else {"targetPort": listen}), **changes}


def lines(services: Services, **options: Any) -> list[str]:
    return [str(route) for route in find_relay_routes(services, **options).routes]


def faults(services: Services, **options: Any) -> dict[str, list[str]]:
    found = find_relay_routes(services, **options).faults
    return {key.removeprefix(f"{OWN}/"): list(why) for key, why in found.items()}


def test_a_port_is_dialled_at_the_same_number_of_the_backend_and_its_target_port_is_where_the_relay_listens() -> None:
    found = find_relay_routes(service("a", ports=[port(80, 20080), port(443, 20443)]))
    assert found.faults == {}
    assert found.routes == (
        RelayRoute(20080, "web", "shop", 80, services=("switchback/a",)),
        RelayRoute(20443, "web", "shop", 443, services=("switchback/a",)),
    )


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        pytest.param(service("a", to=None), [], id="no route Service"),
        pytest.param(service("a", ports=[port(2222)]), ["2222=web/shop:2222,v1"], id="no targetPort"),
        pytest.param(service("a", ports=[port(2222, 0)]), ["2222=web/shop:2222,v1"], id="targetPort 0"),
        pytest.param(service("a", annotations={"proxy-protocol": "v2"}), ["20443=web/shop:443,v2"], id="v2"),
        pytest.param(
            service("a", ports=[port(443, 20443), port(22, 20022)], annotations={"proxy-protocol": "v1,22=none"}),
            ["20022=web/shop:22,none", "20443=web/shop:443,v1"],
            id="another header for a port",
        ),
        pytest.param(
            service("a", ports=[port(443, 20443), port(22, 20022)], annotations={"port-backends": "22=git/ssh"}),
            ["20022=git/ssh:22,v1", "20443=web/shop:443,v1"],
            id="another backend for a port",
        ),
        pytest.param(
            service("a", annotations={"port-backends": "22=git/ssh"}),
            ["20443=web/shop:443,v1"],
            id="another backend for a port that it has not",
        ),
    ],
)
def test_services_give_routes(services: Services, expected: list[str]) -> None:
    assert lines(services) == expected
    assert faults(services) == {}


def test_single_endpoints_keep_their_header_at_their_port() -> None:
    services = service("a", annotations={"endpoint-headers": "443@10.0.0.7=none,80@10.0.0.7=v2"})
    (route,) = find_relay_routes(services).routes
    assert route.endpoint_headers == {"10.0.0.7": "none"}


@pytest.mark.parametrize(
    ("services", "routes", "why"),
    [
        pytest.param(service("a", to="shop"), [], "relay-to: 'shop' is not NAMESPACE/NAME", id="no namespace"),
        pytest.param(service("a", to=""), [], "relay-to: '' is not", id="an empty backend"),
        pytest.param(service("a", to=f"{OWN}/a"), [], "leads to this relay itself", id="itself"),
        pytest.param(service("a", ports=[]), [], "it has no port", id="no port"),
        pytest.param(service("a", ports=[port(443, "https")]), [], "targetPort of port 443 is 'https'", id="a name"),
        pytest.param(service("a", ports=[port(443, 70000)]), [], "is 70000; name a number", id="beyond the last port"),
        pytest.param(service("a", ports=[port(443, -1)]), [], "is -1; name a number", id="negative"),
        pytest.param(
            service("a", ports=[port(443, 8082)]), [], "is 8082, which the relay needs itself", id="our admin port"
        ),
        pytest.param(
            service("a", annotations={"proxy-protocol": "v3"}), [], "proxy-protocol: 'v3'", id="unknown header"
        ),
        pytest.param(
            service("a", annotations={"endpoint-headers": "x"}), [], "endpoint-headers: 'x'", id="bad endpoint"
        ),
        pytest.param(
            service("a", annotations={"port-backends": "x"}), [], "port-backends: 'x'", id="bad backend of a port"
        ),
        pytest.param(
            service("a", ports=[port(443, 20443), port(22, 20022)], annotations={"port-backends": f"22={OWN}/a"}),
            ["20443=web/shop:443,v1"],
            "port-backends: switchback/a, for port 22, leads to this relay itself",
            id="itself at a port",
        ),
        pytest.param(
            service("a", ports=[port(443, 20443), port(443, 20444, protocol="UDP")]),
            ["20443=web/shop:443,v1"],
            "port 443 is UDP; only TCP is relayed",
            id="UDP beside TCP",
        ),
        pytest.param(
            service("a", ports=[port(80, 20443), port(443, 20443)]),
            ["20443=web/shop:80,v1"],
            "the targetPort of port 443 is 20443, which switchback/a has for another route",
            id="two ports of its own on one",
        ),
        pytest.param(
            {f"{OWN}/a": Unreadable(ObjectMeta("a", OWN), "ports is a text")},
            [],
            "unreadable: ports is",
            id="unreadable",
        ),
    ],
)
def test_a_fault_names_the_annotation_or_port_and_moves_no_other_service(
    services: Services, routes: list[str], why: str
) -> None:
    beside = service("zz", to="mq/mqtt", ports=[port(1883, 21883)])
    assert lines({**services, **beside}, reserved=[8082]) == sorted([*routes, "21883=mq/mqtt:1883,v1"])
    found = faults({**services, **beside}, reserved=[8082])
    assert list(found) == ["a"]
    assert why in found["a"][0]


def test_who_has_a_reserved_port_is_named_if_that_is_known() -> None:
    found = faults(service("a", ports=[port(443, 8082), port(80, 20080)]), reserved={8082: "--admin has"})
    assert found == {"a": ["the targetPort of port 443 is 8082, which --admin has"]}
    assert lines(service("a", ports=[port(443, 8082), port(80, 20080)]), reserved={8082: ""}) == [
        "20080=web/shop:80,v1"
    ]


def test_a_backend_that_selects_the_relays_pods_is_the_relay_itself() -> None:
    plain = service("relay", to=None)
    found = faults({**plain, **service("a", to=f"{OWN}/relay")})
    assert list(found) == ["a"]
    other = service("mqtt", to=None, selector={"app": "mqtt"})
    assert faults({**other, **service("a", to=f"{OWN}/mqtt")}) == {}


def test_of_two_services_that_want_one_port_the_older_has_it() -> None:
    young = service("a", created="2026-11-02T00:00:00Z")
    old = service("b", to="mq/mqtt", created="2026-11-01T00:00:00Z")
    assert lines({**young, **old}) == ["20443=mq/mqtt:443,v1"]
    assert list(faults({**young, **old})) == ["a"]


def test_two_services_with_the_same_route_share_it() -> None:
    first = service("a", annotations={"endpoint-headers": "443@10.0.0.7=none"})
    second = service("b", annotations={"endpoint-headers": "443@10.0.0.7=v2,443@10.0.0.8=none"})
    (route,) = find_relay_routes({**first, **second}).routes
    assert route.services == ("switchback/a", "switchback/b")
    assert route.endpoint_headers == {"10.0.0.7": "none", "10.0.0.8": "none"}


def test_a_relay_has_a_limited_number_of_routes() -> None:
    ports = [port(number, 20_000 + number) for number in range(1, MOST_ROUTES + 2)]
    found = find_relay_routes(service("a", ports=ports))
    assert len(found.routes) == MOST_ROUTES
    assert found.faults["switchback/a"] == (f"port {MOST_ROUTES + 1} is left out: a relay has at most 1000 routes",)


SERVICES = st.builds(
    service,
    st.sampled_from("abcdef"),
    to=st.sampled_from([None, "web/shop", "mq/mqtt", "bad", f"{OWN}/a"]),
    created=st.sampled_from(["", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"]),
    ports=st.lists(st.builds(port, st.integers(1, 5), st.sampled_from([None, 20001, 20002, "x", 8082])), max_size=4),
    annotations=st.fixed_dictionaries(
        {},
        optional={
            "proxy-protocol": st.sampled_from(["v1", "v2", "none", "no"]),
            "port-backends": st.sampled_from(["1=mq/mqtt", "2=bad", f"3={OWN}/a"]),
        },
    ),
)


@given(st.lists(SERVICES, max_size=6), st.randoms())
def test_the_order_in_which_services_came_changes_nothing(parts: list[Services], shuffle: random.Random) -> None:
    services = {key: one for part in parts for key, one in part.items()}
    items = list(services.items())
    shuffle.shuffle(items)
    assert find_relay_routes(dict(items)) == find_relay_routes(services)


@given(st.lists(SERVICES, max_size=6))
def test_a_younger_service_moves_no_route_of_an_older_one(parts: list[Services]) -> None:
    services = {key: one for part in parts for key, one in part.items()}
    before = {route.listen: (route.backend, route.port, route.header) for route in find_relay_routes(services).routes}
    newest = service("z", to="other/other", created="2026-12-01T00:00:00Z", ports=[port(1, 20001), port(2, 20002)])
    after = {
        route.listen: (route.backend, route.port, route.header)
        for route in find_relay_routes({**services, **newest}).routes
    }
    assert before.items() <= after.items()
