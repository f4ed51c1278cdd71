"""The addresses of a target Service, and the reason if it has none."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.addresses import is_address
from dnsproxy.hostnames.targets import BadTarget, parse_target
from dnsproxy.sources.target_service import (
    Service,
    ServiceUses,
    UseChange,
    addresses_of,
    fault_of,
    service_collection,
    service_keys,
)
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from sidecar.kubernetes.protocol import Decoder

HEADLESS = "it is headless; name a Service with a ClusterIP"
EXTERNAL = "it is an ExternalName; name a Service with a ClusterIP"
NOT_YET = "it has no ClusterIP yet"


def service(spec: Any) -> Service | Unreadable | None:
    """As it comes out of a list."""
    item = {"metadata": {"name": "relay", "namespace": "edge"}, "spec": spec}
    body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": [item]}).encode()
    decoder = Decoder(Service)
    return decoder.decode_items(decoder.split_page(body).items)[0].value


@pytest.mark.parametrize(
    ("spec", "addresses"),
    [
        pytest.param({"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"]}, ("10.96.0.1",), id="one"),
        pytest.param({"clusterIP": "10.96.0.1"}, ("10.96.0.1",), id="before clusterIPs (1.20)"),
        pytest.param({"clusterIP": "10.96.0.1", "clusterIPs": None}, ("10.96.0.1",), id="null"),
        pytest.param({"clusterIP": "10.96.0.1", "clusterIPs": []}, ("10.96.0.1",), id="no list"),
        pytest.param(
            {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "2001:db8::1"]},
            ("10.96.0.1", "2001:db8::1"),
            id="dual stack",
        ),
        pytest.param(
            {"clusterIP": "2001:db8::1", "clusterIPs": ["2001:db8::1", "10.96.0.1"]},
            ("2001:db8::1", "10.96.0.1"),
            id="dual stack, IPv6 first",
        ),
        pytest.param({"clusterIPs": ["2001:DB8:0::1"]}, ("2001:db8::1",), id="in canonical form"),
        pytest.param({"clusterIPs": ["10.96.0.1", "10.96.0.1"]}, ("10.96.0.1",), id="each once"),
        pytest.param(
            {"type": "LoadBalancer", "clusterIPs": ["10.96.0.1"], "externalIPs": ["192.0.2.1"]},
            ("10.96.0.1",),
            id="never an external address",
        ),
    ],
)
def test_its_cluster_addresses_are_the_target(spec: dict[str, Any], addresses: tuple[str, ...]) -> None:
    assert addresses_of(service(spec)) == addresses
    assert fault_of(service(spec)) is None


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param({"clusterIP": "None", "clusterIPs": ["None"]}, HEADLESS, id="headless"),
        pytest.param({"type": "ClusterIP", "clusterIP": "None"}, HEADLESS, id="headless, before clusterIPs"),
        pytest.param({"type": "ExternalName", "externalName": "lb.example.org"}, EXTERNAL, id="ExternalName"),
        pytest.param({"type": "ExternalName", "clusterIP": ""}, EXTERNAL, id="ExternalName with an empty address"),
        pytest.param({}, NOT_YET, id="empty"),
        pytest.param(None, NOT_YET, id="null"),
        pytest.param({"clusterIP": "", "clusterIPs": [None, ""]}, NOT_YET, id="nulls"),
        pytest.param({"clusterIP": "0.0.0.0"}, NOT_YET, id="no address that a client can connect to"),
        pytest.param({"clusterIP": "not an address"}, NOT_YET, id="no address"),
    ],
)
def test_a_service_without_an_address_has_a_reason(spec: Any, fault: str) -> None:
    assert addresses_of(service(spec)) == ()
    assert fault_of(service(spec)) == fault


@pytest.mark.parametrize("spec", [[], "x", {"clusterIP": 7}, {"clusterIPs": "10.96.0.1"}, {"type": {}}])
def test_one_that_is_none_is_unreadable(spec: Any) -> None:
    found = service(spec)
    assert addresses_of(found) == ()
    assert str(fault_of(found)).startswith("unreadable: ")


def test_one_that_is_not_there_has_none() -> None:
    assert addresses_of(None) == ()
    assert fault_of(None) == "there is no such Service"
    assert addresses_of(Unreadable(ObjectMeta("relay"), "so it goes")) == ()


def test_only_the_one_is_asked_for_so_that_rbac_can_name_it() -> None:
    collection = service_collection("edge/relay")
    assert collection.path == "/api/v1/namespaces/edge/services"
    assert collection.field_selector == "metadata.name=relay"
    assert not collection.optional


def test_services_are_distinguished_from_other_targets() -> None:
    assert service_keys(["service:edge/relay", "192.0.2.1", "status", "service:a/b", "service:a/b"]) == {
        "edge/relay",
        "a/b",
    }


@given(st.text() | st.from_regex(r"service:[a-z/.?#%-]{0,20}", fullmatch=True))
def test_no_target_that_is_taken_reaches_beyond_its_namespace(text: str) -> None:
    """The author of an annotation must not control the path of a request."""
    try:
        target = parse_target(text)
    except BadTarget:
        return
    for key in service_keys([target]):
        parts = service_collection(key).path.split("/")
        assert len(parts) == 6
        assert all(part.replace("-", "").isalnum() for part in key.split("/"))


@given(st.lists(st.none() | st.text(max_size=40) | st.ip_addresses().map(str), max_size=4))
def test_any_answer_of_the_server_gives_only_addresses(ips: list[str | None]) -> None:
    found = addresses_of(msgspec.convert({"metadata": {"name": "x"}, "spec": {"clusterIPs": ips}}, Service))
    assert all(map(is_address, found))
    assert len(set(found)) == len(found)


hostnames = st.sampled_from(["a.org", "b.org", "c.org"])
targets = st.sampled_from(["service:x/one", "service:x/two", "service:y/one", "192.0.2.1", "status"])


@given(st.lists(st.tuples(hostnames, st.lists(targets, max_size=3)), max_size=12))
def test_added_and_removed_services_add_up_to_those_of_the_last_claims(steps: list[tuple[str, list[str]]]) -> None:
    uses, in_use = ServiceUses(), set[str]()
    for hostname, chosen in steps:
        change = uses.put(hostname, chosen)
        assert not change.added & in_use
        assert change.removed <= in_use
        in_use = (in_use | change.added) - change.removed
    last = {hostname: {one[8:] for one in chosen if one.startswith("service:")} for hostname, chosen in steps}
    assert in_use == set().union(*last.values())
    for key in ("x/one", "x/two", "y/one"):
        assert set(uses.hostnames(key)) == {hostname for hostname, keys in last.items() if key in keys}


def test_a_hostname_that_goes_leaves_nothing_behind() -> None:
    uses = ServiceUses()
    assert uses.put("a.org", ["service:x/one"]) == UseChange(added=frozenset({"x/one"}))
    assert uses.put("a.org", ["service:x/one"]) == UseChange()
    assert uses.put("b.org", ["service:x/one"]) == UseChange()
    assert uses.put("a.org", []) == UseChange()
    assert uses.put("b.org", []) == UseChange(removed=frozenset({"x/one"}))
    assert uses.hostnames("x/one") == []
    assert (uses._by_hostname, uses._by_service) == ({}, {})
