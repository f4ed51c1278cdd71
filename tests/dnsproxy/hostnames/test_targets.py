"""Targets: addresses in canonical form, those that no client could connect to, and what `auto` cannot decide."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.addresses import is_address, parse_address, parse_addresses
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.targets import AUTO, Targets
from dnsproxy.hostnames.verdict import judge


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        pytest.param("192.0.2.1", ("192.0.2.1",), id="IPv4"),
        pytest.param("2001:DB8:0:0::1", ("2001:db8::1",), id="IPv6 in canonical form"),
        pytest.param("192.0.2.2,192.0.2.1", ("192.0.2.2", "192.0.2.1"), id="the order is kept"),
        pytest.param("192.0.2.1, 192.0.2.1 ,2001:db8::1,2001:db8:0::1", ("192.0.2.1", "2001:db8::1"), id="each once"),
        pytest.param("127.0.0.1", ("127.0.0.1",), id="loopback"),
    ],
)
def test_addresses_are_canonical_and_unique(text: str, addresses: tuple[str, ...]) -> None:
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("", "''", id="empty"),
        pytest.param(",", "''", id="comma"),
        pytest.param("192.0.2.1,", "''", id="final comma"),
        pytest.param("192.0.2.1 192.0.2.2", "'192.0.2.1 192.0.2.2'", id="space between"),
        pytest.param("192.0.2.1,app.example.org", "'app.example.org'", id="name"),
        pytest.param("192.0.2.1:80", "'192.0.2.1:80'", id="port"),
        pytest.param("[2001:db8::1]", "'[2001:db8::1]'", id="brackets"),
        pytest.param("192.0.2.0/24", "'192.0.2.0/24'", id="network"),
        pytest.param("192.0.2.01", "'192.0.2.01'", id="leading zero"),
        pytest.param("0xc0000201", "'0xc0000201'", id="hexadecimal"),
        pytest.param("3221225985", "'3221225985'", id="one number"),
        pytest.param("\uff11.2.3.4", "'\\uff11.2.3.4'", id="wide digit"),
        pytest.param("0.0.0.0", "'0.0.0.0'", id="unspecified"),
        pytest.param("::", "'::'", id="unspecified IPv6"),
        pytest.param("224.0.0.1", "'224.0.0.1'", id="multicast"),
        pytest.param("ff02::1", "'ff02::1'", id="multicast IPv6"),
        pytest.param("fe80::1%eth0", "'fe80::1%eth0'", id="zone"),
        pytest.param("192.0.2.1\n", "'192.0.2.1\\n'", id="newline"),
        pytest.param("255.255.255.255", "'255.255.255.255'", id="broadcast"),
        pytest.param("::ffff:192.0.2.1", "'::ffff:192.0.2.1' is an IPv4 address in IPv6 form", id="IPv4 in IPv6"),
        pytest.param("::ffff:0:0", "'::ffff:0:0'", id="unspecified in IPv6"),
        pytest.param("fe80::1", "'fe80::1' is link-local", id="link-local"),
        pytest.param("febf::1", "'febf::1' is link-local", id="the end of link-local"),
        pytest.param("169.254.169.254", "'169.254.169.254' is link-local", id="a cloud's metadata"),
    ],
)
def test_an_unusable_address_is_named(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=re.escape(named)):
        parse_address(text.rpartition(",")[2])
    if text.strip() == text:
        with pytest.raises(ValueError, match=re.escape(named)):
            parse_addresses(text)


@given(st.ip_addresses())
def test_every_address_of_a_host_is_taken(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    broadcast, mapped = ipaddress.ip_address("255.255.255.255"), getattr(address, "ipv4_mapped", None)
    if mapped or address.is_link_local or address.is_multicast or address.is_unspecified or address == broadcast:
        with pytest.raises(ValueError, match=re.escape(str(address))):
            parse_address(str(address))
    else:
        assert parse_address(str(address)) == str(address)


@given(st.text() | st.text("0123456789abcdef.:,%/ ", max_size=40))
def test_any_text_is_addresses_or_refused(text: str) -> None:
    try:
        addresses = parse_addresses(text)
    except ValueError:
        return
    assert parse_addresses(",".join(addresses)) == addresses


@pytest.mark.parametrize("text", ["192.0.2.1", "2001:DB8::1"])
def test_an_address_is_distinguished_from_other_texts(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lb.example.org",
        "192.0.2.1,192.0.2.2",
        "192.0.2.0/24",
        "0.0.0.0",
        "fe80::1%eth0",
        "fe80::1",
        "::ffff:192.0.2.1",
    ],
)
def test_an_address_that_nothing_can_connect_to_is_refused(text: str) -> None:
    assert not is_address(text)


def claim(ingress_class: str | None = None, gateway: str = "") -> Claim:
    origin = Origin("VirtualService", "app", "shop")
    return Claim("app.example.org", Reach.NAME, origin, Terms(ingress_class=ingress_class, gateway=gateway))


ISTIO = "IstioGateway infra/main"
RELAY = ("192.0.2.1",)


@pytest.mark.parametrize(
    ("asked", "subject", "reason"),
    [
        pytest.param(claim("nginx"), "ingressclass/nginx", "no Service is for ingressclass/nginx", id="class"),
        pytest.param(claim("c", "infra/main"), "gateway/infra/main", "no Service is for gateway/", id="Gateway"),
        pytest.param(
            claim("istio=ingressgateway", ISTIO),
            "",
            "no Service can be for 'istio=ingressgateway': use --target-for or --target",
            id="Istio's Gateway",
        ),
        pytest.param(claim(None, ISTIO), "", f"no Service can be for {ISTIO!r}", id="Istio's without a selector"),
        pytest.param(claim("istio", ISTIO), "", "no Service can be for 'istio'", id="Istio's, whatever its class"),
        pytest.param(claim("a\x1b[m"), "", r"no Service can be for 'a\x1b[m'", id="a class that is any text"),
        pytest.param(claim(), "", "it has neither an ingress class nor a Gateway", id="neither"),
    ],
)
def test_a_name_that_auto_cannot_decide_is_denied_with_the_remedy(asked: Claim, subject: str, reason: str) -> None:
    targets = Targets((AUTO,))
    assert targets.subject_of(asked) == subject
    (excluded,) = judge([asked], targets=targets, guards=Guards()).excluded
    assert reason in excluded.reason


def test_no_route_service_steers_the_gateway_of_istio_that_has_the_name_of_another() -> None:
    targets = Targets((AUTO,), services={"own/a": RELAY}, steered={"gateway/infra/main": "own/a"})
    assert targets.addresses_for(claim("c", "infra/main")) == RELAY
    assert targets.addresses_for(claim("c", ISTIO)) == ()


def test_the_target_for_a_selector_decides_beside_auto() -> None:
    targets = Targets((AUTO,), {"istio=ingressgateway": RELAY})
    assert targets.addresses_for(claim("istio=ingressgateway", ISTIO)) == RELAY
