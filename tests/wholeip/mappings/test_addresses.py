"""Addresses and networks as values."""

from __future__ import annotations

import copy
import pickle

import pytest

from tests.kit.wholeip_objects import ip
from wholeip.mappings.addresses import Kept, keep, parse_network, parse_shown_network, sorted_addresses


@pytest.mark.parametrize("text", ["192.0.2.1", "2001:db8::1"])
def test_a_kept_address_is_the_address_of_ipaddress_also_as_a_copy(text: str) -> None:
    kept = keep(ip(text))
    assert isinstance(kept, Kept)
    for one in (kept, copy.deepcopy(kept), pickle.loads(pickle.dumps(kept)), kept + 1 - 1):  # noqa: S301
        assert (one, hash(one), str(one)) == (ip(text), hash(ip(text)), text)
        assert (one.version, one.packed, f"{one}") == (ip(text).version, ip(text).packed, text)


@pytest.mark.parametrize("text", ["", "x", "192.0.2.1/33", "192.0.2.1/24", "2001:db8::/129", "192.0.2.0/24,"])
def test_a_network_is_written_exactly(text: str) -> None:
    with pytest.raises(ValueError, match="is not a network"):
        parse_network(text)


def test_a_mapped_network_is_that_of_ipv4_because_no_packet_has_such_an_address() -> None:
    assert parse_network("::ffff:203.0.113.0/124") == parse_network("203.0.113.0/28")
    assert parse_network("::ffff:0:0/96") == parse_network("0.0.0.0/0")
    assert parse_network("::/0").version == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.244.7.1/24", "10.244.7.0/24"),
        ("010.244.000.0/24", "10.244.0.0/24"),
        ("::ffff:010.244.0.1/120", "10.244.0.0/24"),
        ("fd00:9::5/64", "fd00:9::/64"),
        ("10.244.7.1", "10.244.7.1/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
    ],
)
def test_a_network_of_an_object_is_understood_as_kubernetes_understands_it(text: str, expected: str) -> None:
    assert parse_shown_network(text) == parse_network(expected)


@pytest.mark.parametrize("text", ["", "x", "/", "...", ":.", "10.244.0.0/33", "10.244.0/24", "0x10.0.0.0/8"])
def test_no_network_of_an_object_is_made_up(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_shown_network(text)


def test_addresses_of_two_families_are_put_in_order() -> None:
    found = sorted_addresses(map(ip, ["2001:db8::1", "192.0.2.10", "192.0.2.9", "192.0.2.9"]))
    assert [str(one) for one in found] == ["192.0.2.9", "192.0.2.10", "2001:db8::1"]
