"""Addresses and networks as filters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.values.networks import is_in_networks, parse_network


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        pytest.param("192.0.2.10", "192.0.2.10", True, id="the address"),
        pytest.param("192.0.2.10", "192.0.2.11", False, id="another address"),
        pytest.param("192.0.2.0/24", "192.0.2.255", True, id="in the network"),
        pytest.param("192.0.2.77/24", "192.0.2.1", True, id="bits behind the prefix"),
        pytest.param(" 192.0.2.0/24 ", "192.0.3.0", False, id="outside"),
        pytest.param("192.0.2.0/24", "::ffff:192.0.2.1", True, id="IPv4 at a socket of IPv6"),
        pytest.param("::ffff:0:0/96", "::ffff:192.0.2.1", True, id="the mapped network itself"),
        pytest.param("2001:db8::/32", "2001:db8::1", True, id="IPv6"),
        pytest.param("2001:db8::/32", "192.0.2.1", False, id="the other family"),
        pytest.param("fe80::/10", "fe80::1%eth0", True, id="with a zone"),
        pytest.param("0.0.0.0/0", "2001:db8::1", False, id="everything of one family"),
    ],
)
def test_a_network_has_its_addresses(network: str, address: str, expected: bool) -> None:
    assert is_in_networks(address, [parse_network("198.51.100.0/24"), parse_network(network)]) is expected


def test_no_network_has_any_address() -> None:
    assert not is_in_networks("192.0.2.1", [])


@pytest.mark.parametrize(
    "text",
    ["", " ", "app.example.org", "192.0.2", "192.0.2.0/33", "192.0.2.0/-1", "2001:db8::/129", "1:2", "*", "\x1b"],
)
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address or network; try") as caught:
        parse_network(text)
    assert str(caught.value).isprintable()


@given(st.ip_addresses())
def test_each_address_is_in_the_network_of_itself(address: object) -> None:
    assert is_in_networks(str(address), [parse_network(str(address))])
