"""The endpoints of a Service, from EndpointSlices in the form of the API server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.service_endpoints import (
    describe_none,
    find_targets,
    port_name,
    service_collection,
    slice_collection,
    usable_endpoints,
)
from proxy.routes import ServicePort
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.structs.network import Service
from sidecar.values.endpoints import Endpoint

HTTPS = {"name": "https", "port": 8443, "protocol": "TCP"}
HTTP = {"name": "http", "port": 8080, "protocol": "TCP"}


def endpoint(address: str, **conditions: bool | None) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions}


def one_slice(
    *endpoints: dict[str, Any], ports: Any = (HTTP, HTTPS), family: str = "IPv4", **more: Any
) -> EndpointSlice:
    return msgspec.convert(
        {"metadata": {"name": "s"}, "addressType": family, "endpoints": list(endpoints), "ports": ports, **more},
        EndpointSlice,
    )


READY = endpoint("192.0.2.1", ready=True, serving=True, terminating=False)


LEAVING = {"ready": False, "serving": True, "terminating": True}
GONE = {"ready": False, "serving": False, "terminating": True}


@pytest.mark.parametrize(
    ("conditions", "alone", "beside"),
    [
        pytest.param({"ready": True, "serving": True, "terminating": False}, True, True, id="ready"),
        pytest.param({}, True, True, id="nothing is said"),
        pytest.param({"ready": None, "serving": None, "terminating": None}, True, True, id="nothing is known"),
        pytest.param({"ready": False, "serving": False, "terminating": False}, False, False, id="not ready"),
        pytest.param({"ready": False, "serving": True}, False, False, id="not ready, though serving"),
        pytest.param(LEAVING, True, False, id="terminating, and still serving"),
        pytest.param(GONE, False, False, id="terminating"),
        pytest.param(
            {"ready": True, "serving": True, "terminating": True}, True, False, id="terminating, published all the same"
        ),
    ],
)
def test_an_endpoint_gets_connections_alone_or_beside_a_ready_one(
    conditions: dict[str, bool | None], alone: bool, beside: bool
) -> None:
    one, other = Endpoint("192.0.2.9", 8443), Endpoint("192.0.2.1", 8443)
    slices = [one_slice(endpoint(one.host, **conditions))]
    assert usable_endpoints(slices, "https") == ([one] if alone else [])
    assert usable_endpoints([*slices, one_slice(READY)], "https") == ([other, one] if beside else [other])


def test_what_terminates_counts_for_its_own_port() -> None:
    leaving = one_slice(endpoint("192.0.2.9", **LEAVING), ports=[HTTPS])
    slices = [leaving, one_slice(READY, ports=[HTTP]), one_slice(endpoint("192.0.2.8", ready=False))]
    assert usable_endpoints(slices, "https") == [Endpoint("192.0.2.9", 8443)]
    assert usable_endpoints(slices, "http") == [Endpoint("192.0.2.1", 8080)]


@pytest.mark.parametrize(
    ("slices", "port", "found"),
    [
        pytest.param([], "https", [], id="no slice"),
        pytest.param([one_slice()], "https", [], id="no endpoint"),
        pytest.param([one_slice(READY)], "http", ["192.0.2.1:8080"], id="another port"),
        pytest.param([one_slice(READY)], "smtp", [], id="no such port"),
        pytest.param([one_slice(READY, ports=[{"port": 80}])], "", ["192.0.2.1:80"], id="the only port needs no name"),
        pytest.param([one_slice(READY, ports=[{"port": 80, "name": None}])], "", ["192.0.2.1:80"], id="a null name"),
        pytest.param([one_slice(READY, ports=None)], "https", [], id="null ports"),
        pytest.param([one_slice(READY, ports=[{"name": "https"}])], "https", [], id="every port"),
        pytest.param([one_slice(READY, ports=[{"name": "https", "port": 0}])], "https", [], id="port 0"),
        pytest.param([one_slice(READY, ports=[{"name": "https", "port": 65536}])], "https", [], id="port 65536"),
        pytest.param([one_slice(READY, ports=[HTTPS | {"protocol": "UDP"}])], "https", [], id="UDP"),
        pytest.param(
            [one_slice(READY, ports=[HTTPS | {"protocol": None}])], "https", ["192.0.2.1:8443"], id="null protocol"
        ),
        pytest.param(
            [one_slice(endpoint("192.0.2.2")), one_slice(READY)],
            "https",
            ["192.0.2.1:8443", "192.0.2.2:8443"],
            id="two slices, sorted",
        ),
        pytest.param([one_slice(READY), one_slice(READY)], "https", ["192.0.2.1:8443"], id="one pod in two slices"),
        pytest.param(
            [one_slice(READY), one_slice(endpoint("2001:DB8::1"), family="IPv6")],
            "https",
            ["192.0.2.1:8443", "[2001:db8::1]:8443"],
            id="both families",
        ),
        pytest.param(
            [one_slice(READY), one_slice(endpoint("192.0.2.2"), ports=[HTTPS | {"port": 9443}])],
            "https",
            ["192.0.2.1:8443", "192.0.2.2:9443"],
            id="another number for the same name",
        ),
        pytest.param([one_slice(endpoint("web.example.org"), family="FQDN")], "https", [], id="names"),
        pytest.param([one_slice(endpoint("web.example.org"))], "https", [], id="a name for an address"),
        pytest.param([one_slice({"addresses": None})], "https", [], id="null addresses"),
        pytest.param([one_slice({"addresses": []})], "https", [], id="no addresses"),
        pytest.param([one_slice(READY, endpoints=None)], "https", [], id="null endpoints"),
        pytest.param(
            [one_slice({"addresses": ["192.0.2.1"], "conditions": None})], "https", ["192.0.2.1:8443"], id="null"
        ),
    ],
)
def test_the_endpoints_of_a_port_are_found(slices: list[EndpointSlice], port: str, found: list[str]) -> None:
    assert [str(one) for one in usable_endpoints(slices, port)] == found


def service(*ports: dict[str, Any], **spec: Any) -> Service:
    return msgspec.convert({"metadata": {"name": "ingress"}, "spec": {"ports": ports, **spec}}, Service)


@pytest.mark.parametrize(
    ("ports", "wanted", "name"),
    [
        pytest.param([{"name": "http", "port": 80}, {"name": "https", "port": 443}], 443, "https", id="by number"),
        pytest.param([{"name": "http", "port": 80}, {"name": "https", "port": 443}], "http", "http", id="by name"),
        pytest.param([{"port": 80}], 80, "", id="without a name"),
        pytest.param(
            [{"name": "dns", "port": 443, "protocol": "UDP"}, {"name": "https", "port": 443, "protocol": "TCP"}],
            443,
            "https",
            id="the TCP one of two",
        ),
    ],
)
def test_a_port_of_a_service_has_a_name_in_its_slices(
    ports: list[dict[str, Any]], wanted: int | str, name: str
) -> None:
    assert port_name(service(*ports), wanted) == name


@pytest.mark.parametrize(
    ("found", "wanted", "reason"),
    [
        pytest.param(None, 80, "there is no such Service", id="no Service"),
        pytest.param(service(), 80, "the Service has no TCP port 80", id="no ports"),
        pytest.param(
            service({"port": 80, "name": "http"}), 443, "the Service has no TCP port 443", id="another number"
        ),
        pytest.param(
            service({"port": 80, "name": "http"}), "https", "the Service has no TCP port https", id="another name"
        ),
        pytest.param(
            service({"port": 80, "name": "a", "protocol": "UDP"}), 80, "the Service has no TCP port 80", id="UDP"
        ),
        pytest.param(
            service({"port": 80}, type="ExternalName"), 80, "the Service is an ExternalName", id="ExternalName"
        ),
        pytest.param(msgspec.convert({"metadata": {"name": "a"}}, Service), 80, "no TCP port", id="no spec"),
        pytest.param(service(ports=None), 80, "no TCP port", id="null ports"),
    ],
)
def test_a_service_without_the_port_raises_the_reason(found: Service | None, wanted: int | str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        port_name(found, wanted)


def test_why_nothing_is_ready_is_counted() -> None:
    target = ServicePort("web", "ingress", 443)
    slices = [
        one_slice(endpoint("192.0.2.1", ready=False), endpoint("192.0.2.2", ready=False, terminating=True)),
        one_slice(endpoint("192.0.2.3", ready=False)),
    ]
    assert describe_none(target, slices, "https") == "no endpoint of port 443 is ready; 2 not ready, 1 terminating"
    assert describe_none(target, [], "https") == "no endpoint of port 443 is ready"


def test_only_the_objects_of_the_service_are_asked_for() -> None:
    assert service_collection("web", "ingress").field_selector == "metadata.name=ingress"
    slices = slice_collection("web", "ingress")
    assert slices.label_selector == "kubernetes.io/service-name=ingress"
    assert slices.path == "/apis/discovery.k8s.io/v1/namespaces/web/endpointslices"


conditions = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from([True, False, None]) for name in ("ready", "serving", "terminating")}
)
endpoints = st.builds(lambda number, told: endpoint(f"192.0.2.{number}", **told), st.integers(1, 5), conditions)


@given(st.lists(st.lists(endpoints, max_size=4), max_size=4), st.randoms())
def test_the_order_of_slices_and_endpoints_does_not_matter(rows: list[list[dict[str, Any]]], random: Any) -> None:
    found = usable_endpoints([one_slice(*row) for row in rows], "https")
    for row in rows:
        random.shuffle(row)
    random.shuffle(rows)
    assert usable_endpoints([one_slice(*row) for row in rows], "https") == found


def served(*addresses: str, **spec: Any) -> Service:
    ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443}]
    made = {"metadata": {"name": "gate", "namespace": "web"}, "spec": {"ports": ports, "clusterIPs": addresses, **spec}}
    return msgspec.convert(made, Service)


PLACEHOLDER = one_slice(endpoint("192.192.192.192"), ports=[{"port": 9999}])


@pytest.mark.parametrize(
    ("service", "slices", "found"),
    [
        pytest.param(
            served("10.96.0.1", "2001:db8::1"),
            [PLACEHOLDER],
            {Endpoint("10.96.0.1", 443), Endpoint("2001:db8::1", 443)},
            id="a placeholder: the data plane serves it",
        ),
        pytest.param(served("10.96.0.1"), [one_slice(READY)], {Endpoint("192.0.2.1", 8443)}, id="pods"),
        pytest.param(
            served("10.96.0.1"), [PLACEHOLDER, one_slice(READY)], {Endpoint("192.0.2.1", 8443)}, id="pods beside it"
        ),
        pytest.param(served("None"), [PLACEHOLDER], set(), id="a headless Service"),
        pytest.param(served("10.96.0.1"), [], set(), id="no slice"),
        pytest.param(served("10.96.0.1"), [one_slice(endpoint("192.0.2.1", ready=False))], set(), id="no ready pod"),
    ],
)
def test_a_port_is_dialled_at_its_endpoints_or_where_the_data_plane_serves_it(
    service: Service, slices: list[EndpointSlice], found: set[Endpoint]
) -> None:
    assert find_targets(service, 443, slices).ready == found
    assert find_targets(service, "https", slices).ready == found


@pytest.mark.parametrize("service", [None, served("10.96.0.1", type="ExternalName"), served("10.96.0.1", ports=[])])
def test_a_service_without_the_port_has_no_targets(service: Service | None) -> None:
    with pytest.raises(ValueError, match=r"no such Service|ExternalName|no TCP port 443"):
        find_targets(service, 443, [PLACEHOLDER])
