"""Listeners with their defaults."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.admission import NO_NAMESPACE
from dnsproxy.sources.gateway.kinds import GROUP, GRPC_ROUTE, HTTP_ROUTE, ROUTES, TLS_ROUTE, X_GROUP
from dnsproxy.sources.gateway.listeners import Listener, parse_listeners

WEB = {HTTP_ROUTE, GRPC_ROUTE}


def parse(*listeners: Any) -> tuple[tuple[Listener, ...], list[str]]:
    return parse_listeners(msgspec.convert(listeners, tuple[structs.Listener | None, ...]))


def parse_one(**fields: Any) -> Listener:
    (listener,), faults = parse({"name": "a", "protocol": "HTTPS", "port": 443} | fields)
    assert faults == []
    return listener


@pytest.mark.parametrize(
    ("protocol", "kinds", "expected"),
    [
        pytest.param("HTTP", None, WEB, id="HTTP"),
        pytest.param("HTTPS", [], WEB, id="HTTPS, an empty list"),
        pytest.param("TLS", None, {TLS_ROUTE}, id="TLS"),
        pytest.param("TCP", None, set(), id="TCP"),
        pytest.param("UDP", None, set(), id="UDP"),
        pytest.param("example.org/quic", None, set(ROUTES), id="a protocol of its own"),
        pytest.param("HTTPS", [{"kind": HTTP_ROUTE}], {HTTP_ROUTE}, id="named"),
        pytest.param("HTTPS", [{"kind": HTTP_ROUTE, "group": GROUP}], {HTTP_ROUTE}, id="with its group"),
        pytest.param("HTTPS", [None, {"kind": GRPC_ROUTE, "group": None}], {GRPC_ROUTE}, id="nulls"),
        pytest.param("HTTPS", [None], WEB, id="nothing but null"),
        pytest.param("example.org/quic", [{"kind": TLS_ROUTE}], {TLS_ROUTE}, id="named, a protocol of its own"),
        pytest.param("HTTPS", [{"kind": HTTP_ROUTE, "group": ""}], set(), id="of the core group"),
        pytest.param("HTTPS", [{"kind": HTTP_ROUTE, "group": X_GROUP}], set(), id="of another group"),
        pytest.param("HTTPS", [{"kind": "httproute"}], set(), id="in lower case"),
        pytest.param("HTTPS", [{"kind": TLS_ROUTE}], set(), id="a route of another protocol"),
        pytest.param("TCP", [{"kind": HTTP_ROUTE}], set(), id="HTTPRoute on TCP"),
        pytest.param("HTTPS", [{"kind": "TCPRoute"}], set(), id="a kind without hostnames"),
        pytest.param("TLS", [{"kind": "TCPRoute"}, {"kind": TLS_ROUTE}], {TLS_ROUTE}, id="one of two"),
    ],
)
def test_kinds_are_those_named_that_fit_the_protocol(protocol: str, kinds: Any, expected: set[str]) -> None:
    assert parse_one(protocol=protocol, allowedRoutes={"kinds": kinds}).kinds == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"hostname": "App.Example.org."}, "app.example.org", id="normal form"),
        pytest.param({"hostname": "*.example.org"}, "*.example.org", id="wildcard"),
        pytest.param({}, None, id="absent"),
        pytest.param({"hostname": None}, None, id="null"),
        pytest.param({"hostname": ""}, None, id="empty"),
        pytest.param({"hostname": "app.example.org", "protocol": "TCP"}, None, id="TCP"),
        pytest.param({"hostname": "?", "protocol": "UDP"}, None, id="UDP, ignored whatever it is"),
        pytest.param({"hostname": "app.example.org", "protocol": "example.org/quic"}, "app.example.org", id="other"),
    ],
)
def test_hostname_of_a_listener(fields: dict[str, Any], expected: str | None) -> None:
    assert parse_one(**fields).hostname == expected


@pytest.mark.parametrize(
    "hostname", ["*", "*.", "192.0.2.1", "a.*.org", "a b", "a\nb", "x" * 64, "-a.example.org", " "]
)
def test_a_listener_with_an_invalid_hostname_is_dropped_and_affects_no_other(hostname: str) -> None:
    rest = {"protocol": "HTTPS", "port": 443}
    listeners, faults = parse(
        {"name": "a", "hostname": "a.example.org", **rest},
        {"name": "bad", "hostname": hostname, **rest},
        {"name": "c", "hostname": "c.example.org", **rest},
    )
    assert [listener.name for listener in listeners] == ["a", "c"]
    (fault,) = faults
    assert fault.startswith("listener 'bad': ")
    assert fault.isprintable()


TWO = {"protocol": "HTTPS", "port": 443, "hostname": "a.example.org"}


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        pytest.param(TWO, [], id="nothing tells them apart"),
        pytest.param(TWO | {"hostname": "A.example.org."}, [], id="nor does another spelling"),
        pytest.param(TWO | {"hostname": "b.example.org"}, ["a", "b"], id="hostname"),
        pytest.param(TWO | {"hostname": "*.example.org"}, ["a", "b"], id="a wildcard over it"),
        pytest.param(TWO | {"hostname": None}, ["a", "b"], id="no hostname"),
        pytest.param(TWO | {"port": 8443}, ["a", "b"], id="port"),
        pytest.param(TWO | {"protocol": "TLS"}, ["a", "b"], id="protocol"),
    ],
)
def test_indistinct_listeners_are_all_dropped(fields: dict[str, Any], left: list[str]) -> None:
    other = {"name": "other", "protocol": "HTTP", "port": 80}
    listeners, faults = parse({"name": "a", **TWO}, {"name": "b", **fields}, other)
    assert [listener.name for listener in listeners] == [*left, "other"]
    assert [fault.partition(":")[0] for fault in faults] == ([] if left else ["listener 'a'", "listener 'b'"])


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        pytest.param({"protocol": "HTTP", "port": 80}, 0, id="without hostnames"),
        pytest.param({"protocol": "TCP", "port": 22}, 0, id="TCP"),
        pytest.param({"protocol": "TCP", "port": 22, "hostname": "a.example.org"}, 0, id="TCP, hostname ignored"),
        pytest.param({"protocol": "HTTPS"}, 3, id="no port: each gets one"),
    ],
)
def test_three_equal_listeners_are_dropped_if_they_share_a_port(fields: dict[str, Any], left: int) -> None:
    listeners, faults = parse(*({"name": name, **fields} for name in "abc"))
    assert (len(listeners), len(faults)) == (left, 3 - left)
    assert all(fault.isprintable() for fault in faults)


@pytest.mark.parametrize(
    "namespaces",
    [
        {"from": "all"},
        {"from": "Selector"},
        {"from": "Selector", "selector": {"matchExpressions": [{"key": "a", "operator": "~"}]}},
    ],
    ids=["unknown scope", "no selector", "bad selector"],
)
def test_a_listener_whose_admission_cannot_be_read_is_shut(namespaces: Any) -> None:
    """Its name counts: the owner wanted to restrict only the routes."""
    rest = {"protocol": "HTTPS", "port": 443, "hostname": "a.example.org"}
    (listener,), faults = parse({"name": "a", "allowedRoutes": {"namespaces": namespaces}, **rest})
    assert (listener.hostname, listener.admission) == ("a.example.org", NO_NAMESPACE)
    assert [fault.partition(":")[0] for fault in faults] == ["listener 'a'"]


@pytest.mark.parametrize("allowed", [None, {}, {"namespaces": None}, {"namespaces": {}}])
def test_only_its_own_namespace_is_admitted_by_default(allowed: Any) -> None:
    admission = parse_one(allowedRoutes=allowed).admission
    assert admission.refusal("infra", home="infra", labels=None) is None
    assert admission.refusal("web", home="infra", labels=None) is not None


@pytest.mark.parametrize("listeners", [None, (), (None,)])
def test_no_listeners_are_no_faults(listeners: Any) -> None:
    assert parse_listeners(listeners) == ((), [])


@given(st.lists(st.text() | st.none()))
def test_any_hostname_is_a_listener_or_a_fault(hostnames: list[str | None]) -> None:
    listeners, faults = parse(*({"name": "a", "protocol": "HTTP", "hostname": hostname} for hostname in hostnames))
    assert len(listeners) + len(faults) == len(hostnames)
