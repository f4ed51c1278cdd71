"""The source of external-dns' annotations: any history ends as its last state, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, with_terms
from dnsproxy.sources.external_dns.kinds import BESIDE, CLAIMING, GATEWAY, INGRESS, SERVICE, SLICE, WATCHED
from dnsproxy.sources.external_dns.source import ExternalDnsSource
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.external_dns.objects import (
    HOSTNAME,
    INTERNAL,
    NEW,
    OLD,
    TARGET,
    endpoint,
    endpoint_slice,
    gateway,
    headless,
    ingress,
    ingress_class,
    service,
)

DB = "db.example.org"
CLASSES = "external-dns IngressClass"


def settle(source: ExternalDnsSource) -> frozenset[str]:
    hostnames: frozenset[str] = frozenset()
    while not source.is_settled:
        hostnames |= source.settle(1)
    return hostnames


def names(store: ClaimStore) -> set[str]:
    return {one.hostname for one in store.claims()}


def only(store: ClaimStore) -> Claim:
    (one,) = store.claims()
    return one


def test_services_come_change_and_go() -> None:
    store = ClaimStore()
    source = ExternalDnsSource(store)
    assert source.change(SERVICE, {"shop/db": service({HOSTNAME: DB}), "shop/x": service()}) == frozenset()
    assert settle(source) == {DB}
    source.change(SERVICE, {"shop/db": service({HOSTNAME: "new.example.org"})})
    assert settle(source) == {DB, "new.example.org"}
    source.change(SERVICE, {"shop/db": Unreadable(ObjectMeta("db", "shop"), "Expected `str`, got `int`")})
    assert settle(source) == {"new.example.org"}
    assert [str(one.origin) + " " + one.reason for one in store.rejections()] == [
        "Service shop/db unreadable: Expected `str`, got `int`"
    ]
    assert source.change(SERVICE, {"shop/db": None}) == frozenset()
    assert not list(store.rejections())
    assert source.is_empty()


def test_a_service_that_loses_its_annotations_loses_its_names_at_once() -> None:
    store = ClaimStore()
    source = ExternalDnsSource(store)
    source.change(SERVICE, {"shop/db": service({HOSTNAME: DB})})
    settle(source)
    assert source.change(SERVICE, {"shop/db": service()}) == {DB}
    assert source.is_empty()


def test_claims_of_a_snapshot_count_until_the_slices_were_read() -> None:
    """The follower settles once all kinds were read."""
    store = ClaimStore()
    store.restore(SERVICE, "shop/db", [with_terms(_claim_of(headless({HOSTNAME: DB})), status=("10.244.0.7",))])
    source = ExternalDnsSource(store)
    assert source.change(SERVICE, {"shop/db": headless({HOSTNAME: DB})}) == frozenset()
    assert only(store).terms.status == ("10.244.0.7",)
    source.change(SLICE, {"shop/db-1": endpoint_slice(endpoint("10.244.0.8"))})
    assert settle(source) == {DB}
    assert only(store).terms.status == ("10.244.0.8",)


def _claim_of(one: Any) -> Claim:
    store = ClaimStore()
    source = ExternalDnsSource(store)
    source.change(SERVICE, {"shop/db": one})
    settle(source)
    return only(store)


def test_pods_are_followed() -> None:
    store = ClaimStore()
    source = ExternalDnsSource(store)
    source.change(SLICE, {"shop/db-1": endpoint_slice(endpoint("10.244.0.7", "db-0"))})
    assert settle(source) == frozenset()
    source.change(SERVICE, {"shop/db": headless({HOSTNAME: DB})})
    assert settle(source) == {DB, f"db-0.{DB}"}
    source.change(SLICE, {"shop/db-1": endpoint_slice(endpoint("10.244.0.7", "db-0", ready=False))})
    assert settle(source) == {DB, f"db-0.{DB}"}
    assert only(store).terms.status == ()
    source.change(SERVICE, {"shop/db": headless({HOSTNAME: DB}, publishNotReadyAddresses=True)})
    settle(source)
    assert {one.terms.status for one in store.claims()} == {("10.244.0.7",)}
    source.change(SLICE, {"shop/db-1": Unreadable(ObjectMeta("db-1", "shop"), "broken")})
    assert settle(source) == {DB, f"db-0.{DB}"}


def test_the_pods_of_a_service_with_a_cluster_ip_touch_nothing() -> None:
    source = ExternalDnsSource(ClaimStore())
    source.change(SERVICE, {"shop/db": service({INTERNAL: DB}, type="ClusterIP")})
    settle(source)
    source.change(SLICE, {"shop/db-1": endpoint_slice(endpoint("10.244.0.7"))})
    assert source.is_settled


def test_an_ingress_without_a_class_has_the_default_one() -> None:
    store = ClaimStore()
    source = ExternalDnsSource(store)
    source.change(INGRESS, {"shop/web": ingress({HOSTNAME: DB}, class_name=None)})
    settle(source)
    assert only(store).terms.ingress_class is None
    source.change(CLASSES, {"a": ingress_class("a"), "b": ingress_class("b", default=True), "c": None})
    assert settle(source) == {DB}
    assert only(store).terms.ingress_class == "b"
    source.change(CLASSES, {"b": Unreadable(ObjectMeta("b"), "broken")})
    settle(source)
    assert only(store).terms.ingress_class is None


@pytest.mark.parametrize(
    ("kind", "one", "expected"),
    [
        pytest.param(INGRESS, ingress({HOSTNAME: DB}, class_name="in"), {DB}, id="an Ingress of the class"),
        pytest.param(INGRESS, ingress({HOSTNAME: DB}, class_name="out"), set(), id="of another class"),
        pytest.param(INGRESS, ingress({HOSTNAME: DB}, class_name=None), set(), id="of no class"),
        pytest.param(GATEWAY, gateway({HOSTNAME: DB}, class_name="in"), {DB}, id="a Gateway of the class"),
        pytest.param(GATEWAY, gateway({HOSTNAME: DB}, class_name="out"), set(), id="a Gateway of another class"),
        pytest.param(SERVICE, service({HOSTNAME: DB}), {DB}, id="a Service has no class"),
    ],
)
def test_only_some_classes_may_count(kind: str, one: Any, expected: set[str]) -> None:
    store = ClaimStore()
    source = ExternalDnsSource(store, classes=frozenset({"in"}))
    source.change(kind, {"shop/x": one})
    settle(source)
    assert names(store) == expected


def test_an_ingress_without_a_class_counts_if_the_default_one_does() -> None:
    store = ClaimStore()
    source = ExternalDnsSource(store, classes=frozenset({"in"}))
    source.change(INGRESS, {"shop/web": ingress({HOSTNAME: DB}, class_name=None)})
    source.change(CLASSES, {"in": ingress_class("in", default=True)})
    settle(source)
    assert only(store).terms.ingress_class == "in"


def test_an_object_that_was_left_out_can_be_reported_again() -> None:
    store = ClaimStore()
    source = ExternalDnsSource(store)
    source.change(SERVICE, {"shop/db": headless({HOSTNAME: DB})})
    source.change(SLICE, {"shop/db-1": endpoint_slice(endpoint("10.244.0.7"))})
    settle(source)
    store.replace(SERVICE, "shop/db", ())
    assert source.report(SERVICE, "shop/db") == {DB}
    assert only(store).terms.status == ("10.244.0.7",)
    assert source.report(SERVICE, "shop/gone") == frozenset()


def test_100000_hostnames_in_one_object_block_nobody() -> None:
    store = ClaimStore()
    source = ExternalDnsSource(store, most=1_000)
    many = ",".join(f"h{number}.org" for number in range(100_000))
    source.change(
        SERVICE, {"shop/many": service({HOSTNAME: many}, place="shop/many"), "shop/db": service({HOSTNAME: DB})}
    )
    settle(source)
    assert len(names(store)) == 1_001
    assert [one.origin.name for one in store.rejections()] == ["many"]


def test_the_kinds_are_named_apart_from_those_of_other_sources() -> None:
    assert {one.kind for one in WATCHED} == {*CLAIMING, SLICE}
    assert all(one.kind.startswith("external-dns ") for one in WATCHED)
    assert [one.kind for one in BESIDE] == [CLASSES]
    slices = next(one for one in WATCHED if one.kind == SLICE)
    assert slices.collection("v1").label_selector == "service.kubernetes.io/headless"


MARKS = st.fixed_dictionaries(
    {},
    optional={
        HOSTNAME: st.sampled_from([DB, "*.example.org", f"{DB},b.example.org", "", "?"]),
        OLD + "hostname": st.sampled_from(["old.example.org", DB]),
        INTERNAL: st.sampled_from([DB, "in.example.org"]),
        TARGET: st.sampled_from(["192.0.2.9", "cdn.example.com", ""]),
        NEW + "controller": st.sampled_from(["dns-controller", "dns-controller", "mine"]),
        "switchback.dev/ignore": st.sampled_from(["true", "false", "?"]),
        "switchback.dev/target": st.sampled_from(["status", "?"]),
    },
)
SERVICES = st.builds(service, MARKS, type=st.sampled_from(["LoadBalancer", "ClusterIP", "NodePort"])) | st.builds(
    headless, MARKS, publishNotReadyAddresses=st.booleans()
)
ENDPOINTS = st.builds(
    endpoint,
    st.sampled_from(["10.244.0.7", "10.244.0.8", "?"]),
    st.sampled_from([None, "db-0", "?"]),
    ready=st.sampled_from([True, False, None]),
)
SLICES = st.builds(endpoint_slice, ENDPOINTS, ENDPOINTS, service=st.sampled_from("xy"))
INGRESSES = st.builds(ingress, MARKS, class_name=st.sampled_from([None, "nginx", "in"]))
GATEWAYS = st.builds(gateway, MARKS, st.sampled_from([None, "*.example.org"]))
BROKEN = st.just(Unreadable(ObjectMeta("x", "shop"), "broken"))
OBJECTS = {SERVICE: SERVICES, SLICE: SLICES, INGRESS: INGRESSES, GATEWAY: GATEWAYS}
STEPS = st.one_of(
    *(
        st.tuples(st.just(kind), st.sampled_from(["shop/x", "shop/y"]), st.none() | BROKEN | made | made)
        for kind, made in OBJECTS.items()
    ),
    st.tuples(
        st.just(CLASSES),
        st.sampled_from(["nginx", "in"]),
        st.none() | st.builds(ingress_class, st.just("in"), default=st.booleans()),
    ),
)


@given(st.lists(STEPS, max_size=12), st.booleans(), st.randoms())
def test_claims_depend_on_the_last_state_alone(history: list[Any], filtered: bool, random: Any) -> None:
    classes = frozenset({"in"} if filtered else ())
    travelled, expected = ClaimStore(), ClaimStore()
    source, other = (ExternalDnsSource(store, classes=classes) for store in (travelled, expected))
    last: dict[tuple[str, str], Any] = {}
    for kind, key, one in history:
        source.change(kind, {key: one})
        last[kind, key] = one
        if random.random() < 0.5:
            source.settle(2)
    settle(source)
    for kind, key in random.sample(sorted(last), len(last)):
        if last[kind, key] is not None:
            other.change(kind, {key: last[kind, key]})
    settle(other)
    assert set(travelled.claims()) == set(expected.claims())
    assert set(travelled.rejections()) == set(expected.rejections())
    for kind, key in last:
        source.change(kind, {key: None})
    settle(source)
    assert source.is_empty()
    assert not list(travelled.claims())
    assert not list(travelled.rejections())
