"""Rights: namespaces give annotations, IngressClasses and statuses show that somebody serves an object."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.rights import Annotations, Rights, parse_network
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import judge
from sidecar.values.special_addresses import special_kind

HOST = "app.example.org"
TARGETS = Targets(
    ("service:edge/relay",), {"inner": ("127.0.0.2", "192.0.2.2")}, {"shop/metadata": ("100.100.100.200",)}
)
ALLOWED = Rights(namespaces=frozenset({"shop"}), classes=frozenset({"nginx"}))
EVERYWHERE = Rights(Annotations.ALL, tuple(map(parse_network, ("0.0.0.0/0", "::/0"))), classes=frozenset({"nginx"}))


def claim(*, namespace: str = "shop", kind: str = "Ingress", addresses: tuple[str, ...] = (), **more: Any) -> Claim:
    return Claim(HOST, Reach.NAME, Origin(kind, "app", namespace), Terms(addresses, **more))


def denial(wanted: Claim, rights: Rights) -> str:
    return rights.denial(wanted, targets=TARGETS) or ""


@pytest.mark.parametrize(
    ("wanted", "rights"),
    [
        pytest.param(claim(), Rights(), id="an Ingress without class and annotations, nothing read yet"),
        pytest.param(claim(ingress_class="nginx"), ALLOWED, id="a class that exists"),
        pytest.param(claim(ingress_class="gce"), Rights(classes=frozenset()), id="a cluster without IngressClasses"),
        pytest.param(claim(ingress_class="gce", status=("192.0.2.9",)), ALLOWED, id="a class by status alone"),
        pytest.param(claim(ingress_class="gce", status=("192.0.2.9",)), Rights(), id="the same, nothing read yet"),
        pytest.param(
            claim(ingress_class="old"),
            Rights(named_classes=frozenset({"old"}), classes=frozenset({"nginx"})),
            id="a class that a flag names",
        ),
        pytest.param(claim(kind="HTTPRoute", ingress_class="istio"), ALLOWED, id="a gateway class is no IngressClass"),
        pytest.param(claim(annotated=True), ALLOWED, id="an annotated hostname in a labelled namespace"),
        pytest.param(claim(annotated=True, namespace="any"), EVERYWHERE, id="in any namespace"),
        pytest.param(claim(annotated=True), Rights(Annotations.ALL), id="in any namespace, before they were read"),
        pytest.param(claim(target="service:shop/own"), ALLOWED, id="a Service of the namespace"),
        pytest.param(claim(target="service:edge/relay"), ALLOWED, id="the Service that the operator named"),
        pytest.param(
            claim(target="service:infra/shared"),
            replace(ALLOWED, services=frozenset({"service:infra/shared"})),
            id="a Service for all namespaces",
        ),
        pytest.param(claim(target="192.0.2.2"), ALLOWED, id="an address that the operator named"),
        pytest.param(claim(target="127.0.0.2"), ALLOWED, id="even one that is never a target"),
        pytest.param(claim(target="192.0.2.7,2001:db8::7"), EVERYWHERE, id="addresses in the networks"),
        pytest.param(claim(target="status", status=("192.0.2.9", "lb.example.net")), ALLOWED, id="its own status"),
        pytest.param(claim(target="status"), ALLOWED, id="its own status, which is empty"),
        pytest.param(claim(target="own", status=("10.244.0.7",)), ALLOWED, id="its pods, outside of every network"),
        pytest.param(
            claim(namespace="web", kind="HTTPRoute", target="service:shop/own", target_from="shop"),
            ALLOWED,
            id="the target of a Gateway with the right, for a route without it",
        ),
        pytest.param(
            claim(annotated=True, addresses=("127.0.0.1",), ingress_class="none"),
            Rights(Annotations.OFF, classes=frozenset({"nginx"})),
            id="a static name needs no right",
        ),
    ],
)
def test_a_claim_with_its_rights_passes(wanted: Claim, rights: Rights) -> None:
    assert denial(wanted, rights) == ""


@pytest.mark.parametrize(
    ("wanted", "rights", "reason"),
    [
        pytest.param(claim(ingress_class="nosuchclass"), ALLOWED, "no IngressClass 'nosuchclass'", id="no such class"),
        pytest.param(claim(ingress_class="NGINX"), ALLOWED, "no IngressClass", id="a class in capitals"),
        pytest.param(claim(ingress_class="nginx"), Rights(), "not read yet", id="before the classes were read"),
        pytest.param(
            claim(ingress_class="nosuchclass", annotated=True, target="service:shop/own"),
            ALLOWED,
            "no IngressClass",
            id="with annotations that count",
        ),
        pytest.param(claim(kind="Gateway", accepted=False), ALLOWED, "accepted", id="a Gateway that nobody accepts"),
        pytest.param(claim(kind="HTTPRoute", accepted=False), EVERYWHERE, "accepted", id="a route to one"),
        pytest.param(claim(annotated=True, namespace="b"), ALLOWED, "namespace b needs the label", id="no label"),
        pytest.param(claim(annotated=True, namespace="shop2"), ALLOWED, "namespace shop2", id="a longer namespace"),
        pytest.param(claim(annotated=True), Rights(), "not read yet", id="before the namespaces were read"),
        pytest.param(claim(annotated=True), Rights(namespaces=frozenset()), "needs the label", id="no labels at all"),
        pytest.param(
            claim(annotated=True), Rights(Annotations.OFF, namespaces=frozenset({"shop"})), "off", id="switched off"
        ),
        pytest.param(claim(target="service:b/x", namespace="b"), ALLOWED, "needs the label", id="a target, no label"),
        pytest.param(claim(target="status", namespace="b"), ALLOWED, "needs the label", id="status, no label"),
        pytest.param(claim(target="own", namespace="b"), ALLOWED, "needs the label", id="own addresses, no label"),
        pytest.param(
            claim(target="own", status=("10.244.0.7", "100.100.100.200")),
            EVERYWHERE,
            "100.100.100.200 is the metadata service",
            id="own addresses that a tenant wrote into a slice by hand",
        ),
        pytest.param(claim(target="192.0.2.2", namespace="b"), ALLOWED, "needs the label", id="an operator's address"),
        pytest.param(claim(target="service:b/own"), ALLOWED, "not in namespace shop", id="a Service of others"),
        pytest.param(claim(target="service:b/own"), EVERYWHERE, "not in namespace shop", id="also with all"),
        pytest.param(claim(target="service:shop2/own"), ALLOWED, "not in namespace shop", id="of a longer namespace"),
        pytest.param(
            claim(target="service:infra/shared2"),
            replace(ALLOWED, services=frozenset({"service:infra/shared"})),
            "not in namespace",
            id="beside the Service for all namespaces",
        ),
        pytest.param(
            claim(target="service:b/x", namespace="b"),
            replace(ALLOWED, services=frozenset({"service:b/x"})),
            "needs the label",
            id="a Service for all namespaces that have the right",
        ),
        pytest.param(
            claim(target="service:shop/metadata"), ALLOWED, "metadata", id="a Service that has such an address"
        ),
        pytest.param(claim(target="service:edge/other"), ALLOWED, "not in namespace", id="beside the operator's"),
        pytest.param(
            claim(kind="HTTPRoute", target="service:shop/own", target_from="infra"),
            ALLOWED,
            "namespace infra needs the label",
            id="a Gateway without the right, for a route with it",
        ),
        pytest.param(claim(target="192.0.2.7"), ALLOWED, "outside of --target-network", id="no network"),
        pytest.param(
            claim(target="192.0.2.2,198.51.100.1"), ALLOWED, "198.51.100.1 is outside", id="one of two addresses"
        ),
        pytest.param(
            claim(target="2001:db8::7"),
            Rights(Annotations.ALL, (parse_network("192.0.2.0/24"),)),
            "outside",
            id="the other family",
        ),
        pytest.param(
            claim(target="status", status=("192.0.2.9", "127.0.0.1")),
            ALLOWED,
            "a loopback address",
            id="a status can lie",
        ),
    ],
)
def test_a_claim_without_its_rights_is_denied(wanted: Claim, rights: Rights, reason: str) -> None:
    assert reason in denial(wanted, rights)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.255", "0.0.0.0", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.255.255.255",
        "255.255.255.255", "100.100.100.200", "168.63.129.16", "192.0.0.192", "::", "::1", "fe80::1", "febf::1",
        "ff02::1", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::1",
    ],
)  # fmt: skip
def test_no_network_allows_these_addresses(address: str) -> None:
    kind = special_kind(ip_address(address))
    assert kind
    assert f"its target {address} is {kind}" in denial(claim(target=address), EVERYWHERE)
    assert f"its target {address} is {kind}" in denial(claim(target=f"192.0.2.7,{address}"), EVERYWHERE)


@pytest.mark.parametrize(
    "address",
    ["128.0.0.1", "169.253.255.255", "169.255.0.1", "223.255.255.255", "100.100.100.201", "64:ff9b::c000:201"],
)
def test_their_neighbours_are_allowed(address: str) -> None:
    assert denial(claim(target=address), EVERYWHERE) == ""


@pytest.mark.parametrize(
    "text", ["", "192.0.2", "192.0.2.1/24", "192.0.2.0/33", "example.org", "2001:db8::/129", "192.0.2.0-192.0.2.9", "/"]
)
def test_a_text_that_is_not_a_network_is_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a network") as caught:
        parse_network(text)
    assert f"'{text}'" in str(caught.value)


def hosts_of(claims: Collection[Claim], *, rights: Rights | None, guards: Guards = Guards()) -> tuple[str, ...]:  # noqa: B008
    return judge(claims, targets=Targets(("192.0.2.1",)), guards=guards, rights=rights).addresses


def test_a_claim_without_rights_does_not_keep_the_name_from_another() -> None:
    taken = claim(kind="A", namespace="b", target="203.0.113.1")
    assert hosts_of([taken, claim(kind="Z")], rights=ALLOWED) == ("192.0.2.1",)
    assert hosts_of([taken, claim(kind="Z")], rights=None) == ("203.0.113.1",)


def test_an_annotation_with_the_right_passes_no_guard() -> None:
    assert hosts_of([claim(annotated=True)], rights=EVERYWHERE) == ("192.0.2.1",)
    assert hosts_of([claim(annotated=True)], rights=EVERYWHERE, guards=Guards(deny=(HOST,))) == ()
