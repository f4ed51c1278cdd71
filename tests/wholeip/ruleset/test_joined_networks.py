"""Networks joined as ipaddress joins them, in steps."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholeip.ruleset.joined_networks import join_networks
from wholeip.ruleset.steps import at_once


@st.composite
def networks(draw: st.DrawFn) -> IPv4Network | IPv6Network:
    """Some near one another, so that they meet, and at both ends of the space."""
    bits = draw(st.sampled_from([32, 128]))
    length = draw(st.integers(bits - 6, bits) | st.integers(0, bits))
    first = draw(st.integers(0, 255) | st.integers(0, 255).map(lambda one: (1 << bits) - 1 - one))
    network = first >> (bits - length) << (bits - length), length
    return IPv4Network(network) if bits == 32 else IPv6Network(network)


@pytest.mark.parametrize(
    ("given_networks", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["192.0.2.0/25", "192.0.2.128/25"], ["192.0.2.0/24"], id="two halves"),
        pytest.param(["192.0.2.128/25", "192.0.3.0/25"], ["192.0.2.128/25", "192.0.3.0/25"], id="side by side"),
        pytest.param(["192.0.2.7/32", "192.0.2.0/24"], ["192.0.2.0/24"], id="one in another"),
        pytest.param(["192.0.2.1/32", "192.0.2.1/32"], ["192.0.2.1"], id="an address twice"),
        pytest.param(["0.0.0.0/1", "128.0.0.0/1", "255.255.255.255/32"], ["0.0.0.0/0"], id="the whole space"),
        pytest.param(["2001:db8::%eth0/128", "2001:db8::1/128"], ["2001:db8::/127"], id="a scope has no meaning"),
    ],
)
def test_networks_are_joined(given_networks: list[str], expected: list[str]) -> None:
    found = at_once(join_networks(map(ip_network, given_networks)))
    assert found[4] + found[6] == expected


@given(st.lists(networks(), max_size=12))
def test_they_are_joined_as_ipaddress_joins_them(some: list[IPv4Network | IPv6Network]) -> None:
    found = at_once(join_networks(some))
    assert found.keys() == {4, 6}
    for version, joined in found.items():
        expected = collapse_addresses([one for one in some if one.version == version])  # type: ignore[type-var]
        assert [ip_network(one) for one in joined] == list(expected)
        # An address stands alone; of IPv6, /32 is a network.
        assert not any(one.endswith("/32" if version == 4 else "/128") for one in joined)


def test_each_network_is_a_step() -> None:
    some = [ip_network(f"10.{one}.0.0/17") for one in range(100)]
    assert len(list(join_networks(some))) == 3 * len(some)
