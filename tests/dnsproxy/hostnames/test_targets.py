"""Targets: addresses in canonical form, and those that no client could connect to."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.addresses import is_address, parse_address, parse_addresses


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
