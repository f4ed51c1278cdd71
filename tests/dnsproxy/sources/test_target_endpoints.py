"""Which addresses of a target Service lead to a ready endpoint, and the reason if none does."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.target_endpoints import endpoint_fault, reachable_addresses, slice_collection
from dnsproxy.sources.target_service import Service, addresses_of
from dnsproxy.sources.target_state import TargetState
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from sidecar.kubernetes.protocol import Decoder

V4, V6 = "10.96.0.1", "2001:db8::1"
READY, NOT_READY = {"ready": True}, {"ready": False, "serving": False}
LEAVING = {"ready": False, "serving": True, "terminating": True}
GONE = {"ready": False, "serving": False, "terminating": True}
HTTP, HTTPS = {"name": "http", "port": 80}, {"name": "https", "port": 443}
WEB: Final = (HTTP, HTTPS)


def service(*ports: dict[str, Any], ips: tuple[str, ...] = (V4,), policy: str | None = None) -> Service:
    spec = {"clusterIPs": list(ips), "ports": list(ports), "internalTrafficPolicy": policy}
    item = {"metadata": {"name": "relay", "namespace": "edge"}, "spec": spec}
    found = _decoded(Service, item)
    assert isinstance(found, Service)
    return found


def part(
    *conditions: dict[str, bool] | None,
    ports: tuple[dict[str, Any], ...] | None = WEB,
    family: str = "IPv4",
    **more: Any,
) -> EndpointSlice | Unreadable:
    """An EndpointSlice with an endpoint for each of the conditions; the numbers of its ports are those of pods."""
    address = "192.0.2.7" if family == "IPv4" else "2001:db8::7"
    endpoints = [{"addresses": [address], "conditions": one} for one in conditions]
    own = None if ports is None else [{**one, "port": 8000 + one["port"]} for one in ports]
    item = {"metadata": {"name": "relay-1", "namespace": "edge"}, "addressType": family, "endpoints": endpoints}
    found = _decoded(EndpointSlice, item | {"ports": own} | more)
    assert isinstance(found, EndpointSlice | Unreadable)
    return found


def _decoded(kind: Any, item: dict[str, Any]) -> object:
    body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": [item]}).encode()
    decoder = Decoder(kind)
    return decoder.decode_items(decoder.split_page(body).items)[0].value


UNNAMED: Final = {"port": 443}
MQTT: Final = {"name": "mqtt", "port": 8883}
QUIC: Final = {"name": "quic", "port": 443, "protocol": "UDP"}


@pytest.mark.parametrize(
    ("ports", "slices"),
    [
        pytest.param(WEB, [part(READY)], id="one that is ready"),
        pytest.param(WEB, [part(NOT_READY, READY, GONE)], id="one of several"),
        pytest.param(WEB, [part(NOT_READY), part(READY)], id="in the second slice"),
        pytest.param(WEB, [part(READY, ports=(HTTP,)), part(READY, ports=(HTTPS,))], id="each port by another pod"),
        pytest.param(WEB, [part(None)], id="conditions unknown"),
        pytest.param(WEB, [part({})], id="no condition"),
        pytest.param(WEB, [part({"terminating": False})], id="ready unknown"),
        pytest.param((UNNAMED,), [part(READY, ports=(UNNAMED,))], id="an unnamed port"),
        pytest.param((*WEB, MQTT), [part(READY)], id="no endpoint for a port that is not the web's"),
        pytest.param(
            (MQTT, {"name": "ssh", "port": 22}), [part(READY, ports=(MQTT,))], id="none for the web: any port"
        ),
        pytest.param((HTTP,), [part(READY, ports=(HTTP,))], id="80 alone"),
        pytest.param((*WEB, QUIC), [part(READY)], id="UDP does not count"),
        pytest.param((QUIC,), [], id="no TCP port: as before"),
        pytest.param((), [], id="no port: as before"),
        pytest.param(WEB, [part(READY, ports=({"port": 1999},))], id="a placeholder of Cilium"),
    ],
)
def test_it_counts_with_a_ready_endpoint(ports: tuple[dict[str, Any], ...], slices: list[Any]) -> None:
    assert reachable_addresses(service(*ports), slices) == (V4,)


@pytest.mark.parametrize(
    ("ports", "slices", "fault"),
    [
        pytest.param(WEB, [], "its ports 80, 443 have no ready endpoint", id="no slice"),
        pytest.param(WEB, [part()], "its ports 80, 443 have no ready endpoint", id="scaled to 0"),
        pytest.param(
            WEB, [part(NOT_READY, NOT_READY)], "its ports 80, 443 have no ready endpoint; 2 not ready", id="not ready"
        ),
        pytest.param(
            WEB,
            [part(LEAVING, GONE)],
            "its ports 80, 443 have no ready endpoint; 1 terminating, 1 terminating and still serving",
            id="all terminate",
        ),
        pytest.param(WEB, [part(READY, ports=(HTTP,))], "its port 443 has no ready endpoint", id="443 missing"),
        pytest.param(WEB, [part(READY, ports=(HTTPS,))], "its port 80 has no ready endpoint", id="80 missing"),
        pytest.param(WEB, [part(READY, ports=())], "its ports 80, 443 have no ready endpoint", id="pods without ports"),
        pytest.param(WEB, [part(READY, ports=None)], "its ports 80, 443 have no ready endpoint", id="ports null"),
        pytest.param(
            WEB, [part(READY, endpoints=None)], "its ports 80, 443 have no ready endpoint", id="endpoints null"
        ),
        pytest.param(
            WEB,
            [part(endpoints=[{"addresses": [], "conditions": READY}])],
            "its ports 80, 443 have no ready endpoint",
            id="an endpoint without an address",
        ),
        pytest.param(
            WEB, [part(READY, family="FQDN")], "its ports 80, 443 have no ready endpoint", id="names are no endpoints"
        ),
        pytest.param(
            WEB, [part(READY, family="IPv6")], "its ports 80, 443 have no ready endpoint", id="of the other family"
        ),
        pytest.param(
            (MQTT,), [part(NOT_READY, ports=(MQTT,))], "its port 8883 has no ready endpoint; 1 not ready", id="MQTT"
        ),
        pytest.param(
            ({**HTTPS, "protocol": "TCP"},),
            [part(READY, ports=({**HTTPS, "protocol": "UDP"},))],
            "its port 443 has no ready endpoint",
            id="UDP where TCP is needed",
        ),
        pytest.param(
            WEB,
            [part(READY), part(endpoints=7)],
            None,
            id="an unreadable slice beside a good one",
        ),
    ],
)
def test_it_does_not_without_one(ports: tuple[dict[str, Any], ...], slices: list[Any], fault: str | None) -> None:
    target = service(*ports)
    if fault is None:
        assert reachable_addresses(target, slices) == (V4,)
        return
    assert reachable_addresses(target, slices) == ()
    assert endpoint_fault(target, slices) == fault


def test_a_family_counts_by_itself() -> None:
    both = service(*WEB, ips=(V6, V4))
    assert reachable_addresses(both, [part(READY)]) == (V4,)
    assert reachable_addresses(both, [part(READY, family="IPv6")]) == (V6,)
    assert reachable_addresses(both, [part(READY), part(READY, family="IPv6")]) == (V6, V4)
    assert reachable_addresses(both, [part(READY, ports=({"port": 1999},))]) == (V6, V4)
    assert endpoint_fault(both, [part(NOT_READY)]) == "its ports 80, 443 have no ready endpoint; 1 not ready"


def test_what_is_no_service_has_no_address() -> None:
    assert reachable_addresses(None, [part(READY)]) == ()
    assert reachable_addresses(Unreadable(ObjectMeta("relay"), "so it goes"), [part(READY)]) == ()


def test_only_the_slices_of_the_one_are_asked_for() -> None:
    collection = slice_collection("edge/relay")
    assert collection.path == "/apis/discovery.k8s.io/v1/namespaces/edge/endpointslices"
    assert collection.label_selector == "kubernetes.io/service-name=relay"


CONDITIONS = st.fixed_dictionaries({}, optional=dict.fromkeys(("ready", "serving", "terminating"), st.booleans()))
PARTS = st.builds(
    lambda conditions, ports, family: part(*conditions, ports=tuple(ports), family=family),
    st.lists(CONDITIONS, max_size=3),
    st.lists(st.sampled_from([HTTP, HTTPS, MQTT, {"port": 1999}]), max_size=3),
    st.sampled_from(["IPv4", "IPv6", "FQDN"]),
)


@given(st.lists(PARTS, max_size=4), st.sampled_from([WEB, (HTTP,), (MQTT,), ()]), st.sampled_from([(V4,), (V6, V4)]))
def test_the_order_of_the_slices_does_not_matter_and_more_of_them_never_harm(
    slices: list[Any], ports: tuple[dict[str, Any], ...], ips: tuple[str, ...]
) -> None:
    target = service(*ports, ips=ips)
    found = reachable_addresses(target, slices)
    assert found == reachable_addresses(target, slices[::-1])
    assert set(found) <= set(reachable_addresses(target, [*slices, part(READY)])) <= set(addresses_of(target))
    state = TargetState()
    state.service, state.slices_read = target, True
    state.take_slices({str(number): one for number, one in enumerate(slices)})
    assert state.unready is (not found)
    assert (state.fault is None) is bool(found)
    assert state.addresses == (found or addresses_of(target))


def test_before_the_slices_were_read_the_addresses_count() -> None:
    state = TargetState()
    state.service = service(*WEB)
    assert (state.addresses, state.unready, state.fault) == ((V4,), False, None)
    state.slices_read = True
    assert state.unready
    state.take_slices({"edge/relay-1": part(READY)})
    assert not state.unready
    state.take_slices({"edge/relay-1": None})
    assert state.unready


@pytest.mark.parametrize("policy", [None, "Cluster", "", "Unheard"])
def test_an_address_for_clients_of_every_node_counts(policy: str | None) -> None:
    assert reachable_addresses(service(*WEB, policy=policy), [part(READY)]) == (V4,)


@pytest.mark.parametrize("slices_read", [True, False], ids=["slices read", "slices hidden"])
def test_an_address_for_clients_of_some_nodes_does_not_count(slices_read: bool) -> None:
    """With Local, kube-proxy drops what the other nodes send."""
    state = TargetState()
    state.service, state.slices_read = service(*WEB, policy="Local"), slices_read
    state.take_slices({"edge/relay-1": part(READY)})
    assert state.unready
    assert state.fault == "its internalTrafficPolicy is Local, which drops clients on nodes without one of its pods"
