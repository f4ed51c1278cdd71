"""Which addresses are refused, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.wholeip_objects import ip
from wholeip.mappings.refused_addresses import parse_mappable


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "not an IP address", id="nothing"),
        pytest.param("lb.example.org", "not an IP address", id="a name"),
        pytest.param("192.0.2.1/32", "not an IP address", id="a network"),
        pytest.param("192.0.2.1:80", "not an IP address", id="with a port"),
        pytest.param("192.0.2.01", "not an IP address", id="a leading zero, octal to some"),
        pytest.param(" 192.0.2.1", "not an IP address", id="a blank"),
        pytest.param("192.0.2.1; flush ruleset", "not an IP address", id="a command behind it"),
        pytest.param("192.0.2.1\n", "not an IP address", id="a line end"),
        pytest.param("0.0.0.0", "the unspecified", id="unspecified"),
        pytest.param("::", "the unspecified", id="unspecified, IPv6"),
        pytest.param("0.1.2.3", "a reserved", id="this network"),
        pytest.param("127.0.0.1", "a loopback", id="loopback"),
        pytest.param("127.255.255.254", "a loopback", id="loopback, the last one"),
        pytest.param("::1", "a loopback", id="loopback, IPv6"),
        pytest.param("169.254.169.254", "a link-local", id="the metadata of a cloud"),
        pytest.param("fd00:ec2::254", "the metadata service", id="the metadata of a cloud, IPv6"),
        pytest.param("100.100.100.200", "the metadata service", id="the metadata of a cloud, in 100.64.0.0/10"),
        pytest.param("168.63.129.16", "the metadata service", id="the metadata of a cloud, a public address"),
        pytest.param("fe80::1", "a link-local", id="link-local, IPv6"),
        pytest.param("fe80::1%eth0", "has a scope", id="with a scope"),
        pytest.param("2001:db8::1%eth0", "has a scope", id="with a scope that means nothing"),
        pytest.param("224.0.0.1", "a multicast", id="multicast"),
        pytest.param("ff02::1", "a multicast", id="multicast, IPv6"),
        pytest.param("255.255.255.255", "a reserved", id="broadcast"),
        pytest.param("240.0.0.1", "a reserved", id="class E"),
        pytest.param("::ffff:192.0.2.1", "an IPv4-mapped", id="IPv4-mapped"),
        pytest.param("::ffff:127.0.0.1", "an IPv4-mapped", id="loopback, IPv4-mapped"),
    ],
)
def test_what_cannot_belong_to_one_pod_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_mappable(text)


@pytest.mark.parametrize("text", ["192.0.2.1", "10.0.0.1", "100.64.0.1", "203.0.113.255", "2001:db8::1", "fd00::1"])
def test_public_and_private_unicast_addresses_are_taken(text: str) -> None:
    assert str(parse_mappable(text)) == text


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        address = parse_mappable(text)
    except ValueError:
        return
    assert ip(str(address)) == address
    assert hash(ip(str(address))) == hash(address)
