"""Addresses that a hosts file of a node never gets."""

from __future__ import annotations

import pytest

from dnsproxy.publish.hosts.refused_addresses import is_refused


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("127.0.0.1", id="loopback"),
        pytest.param("127.255.255.254", id="the end of loopback"),
        pytest.param("::1", id="loopback, IPv6"),
        pytest.param("::ffff:127.0.0.1", id="loopback, mapped"),
        pytest.param("::127.0.0.1", id="loopback, compatible"),
        pytest.param("0.0.0.0", id="unspecified"),
        pytest.param("0.0.0.1", id="this network"),
        pytest.param("::", id="unspecified, IPv6"),
        pytest.param("169.254.169.254", id="metadata"),
        pytest.param("169.254.0.1", id="link-local"),
        pytest.param("fe80::1", id="link-local, IPv6"),
        pytest.param("fe80::1%eth0", id="with a scope"),
        pytest.param("224.0.0.1", id="multicast"),
        pytest.param("ff02::1", id="multicast, IPv6"),
        pytest.param("255.255.255.255", id="broadcast"),
        pytest.param("240.0.0.1", id="reserved"),
        pytest.param("100.100.100.200", id="metadata of Alibaba Cloud"),
        pytest.param("168.63.129.16", id="metadata of Azure"),
        pytest.param("192.0.0.192", id="metadata of Oracle Cloud"),
        pytest.param("fd00:ec2::254", id="metadata of AWS, IPv6"),
        pytest.param("fd20:ce::254", id="metadata of Google Cloud, IPv6"),
        pytest.param("fd00:42::42", id="metadata of Scaleway, IPv6"),
        pytest.param("192.0.2.1\n127.0.0.1", id="two lines"),
        pytest.param("0177.0.0.1", id="octal"),
        pytest.param("", id="empty"),
    ],
)
def test_addresses_of_the_host_of_a_link_and_of_a_cloud_are_refused(address: str) -> None:
    assert is_refused(address)


@pytest.mark.parametrize("address", ["192.0.2.10", "10.0.0.1", "100.64.0.1", "2001:db8::10", "fd00::1"])
def test_addresses_that_other_hosts_can_connect_to_are_taken(address: str) -> None:
    assert not is_refused(address)
