"""Special addresses, in every spelling that reaches them."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.values.special_addresses import special_kind


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "the unspecified address"),
        ("::", "the unspecified address"),
        ("0.1.2.3", "a reserved address"),
        ("255.255.255.255", "a reserved address"),
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("::1", "a loopback address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("64:ff9b::7f00:1", "a loopback address"),
        ("2002:7f00:1::", "a loopback address"),
        ("169.254.169.254", "a link-local address"),
        ("64:ff9b::a9fe:a9fe", "a link-local address"),
        ("fe80::1", "a link-local address"),
        ("224.0.0.1", "a multicast address"),
        ("ff02::1", "a multicast address"),
        ("100.100.100.200", "the metadata service of a cloud"),
        ("168.63.129.16", "the metadata service of a cloud"),
        ("192.0.0.192", "the metadata service of a cloud"),
        ("fd00:ec2::254", "the metadata service of a cloud"),
        ("fd00:ec2::253", "the metadata service of a cloud"),
        ("fd20:ce::254", "the metadata service of a cloud"),
        ("fd00:42::42", "the metadata service of a cloud"),
    ],
)
def test_an_address_that_belongs_to_nobody_alone_is_named(address: str, kind: str) -> None:
    assert special_kind(ip_address(address)) == kind


@pytest.mark.parametrize(
    "address",
    [
        "192.0.2.10",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.201",
        "240.0.0.1",
        "2001:db8::10",
        "fd00::1",
        "64:ff9b::a00:1",
    ],
)
def test_every_other_address_is_not_special(address: str) -> None:
    assert special_kind(ip_address(address)) is None


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_what_it_stands_for(address: object) -> None:
    plain = ip_address(str(address))
    assert special_kind(ip_address(f"::ffff:{plain}")) == special_kind(plain)
