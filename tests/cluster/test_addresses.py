"""The addresses of the scene."""

from __future__ import annotations

import ipaddress
from itertools import combinations

import pytest

from tests.cluster.addresses import IPV4, IPV6, WORLD, Addresses, of_families

BOTH = pytest.mark.parametrize("at", [IPV4, IPV6], ids=["IPv4", "IPv6"])
TESTS = {4: "198.18.0.0/15", 6: "2001:db8::/32"}


def on_the_link(at: Addresses) -> list[str]:
    nodes = [at.node(number) for number in (1, 2)]
    apart = [at.balancer, at.visitor, at.outside, at.authority]
    return [*nodes, at.router, at.public, at.passed, at.second, *map(at.of, WORLD), *apart]


@BOTH
def test_all_addresses_on_the_link_are_of_it_and_differ(at: Addresses) -> None:
    link = ipaddress.ip_interface(f"{at.node(1)}/{at.length}").network
    assert all(ipaddress.ip_address(one) in link for one in on_the_link(at))
    assert len(set(on_the_link(at))) == len(on_the_link(at))


@BOTH
def test_addresses_outside_of_pods_and_services_are_for_tests(at: Addresses) -> None:
    reserved = ipaddress.ip_network(TESTS[at.family])
    assert all(ipaddress.ip_address(one) in reserved for one in (*on_the_link(at), at.whole))


@BOTH
def test_the_ranges_do_not_overlap(at: Addresses) -> None:
    link = ipaddress.ip_interface(f"{at.node(1)}/{at.length}").network
    ranges = [link, *map(ipaddress.ip_network, (at.pods, at.services))]
    assert not any(one.overlaps(other) for one, other in combinations(ranges, 2))
    assert not any(ipaddress.ip_address(at.whole) in one for one in ranges)


@BOTH
def test_each_node_has_a_range_within_that_of_all_pods(at: Addresses) -> None:
    every = ipaddress.ip_network(at.pods)
    first, second = (ipaddress.ip_network(at.pods_of(number)) for number in (1, 2))
    assert first.subnet_of(every)  # type: ignore[arg-type]
    assert second.subnet_of(every)  # type: ignore[arg-type]
    assert not first.overlaps(second)


@BOTH
def test_the_dns_is_a_service(at: Addresses) -> None:
    assert ipaddress.ip_address(at.dns) in ipaddress.ip_network(at.services)


def test_the_first_family_is_the_primary_one() -> None:
    assert of_families((6, 4)) == (IPV6, IPV4)


@pytest.mark.parametrize(("at", "wanted"), [(IPV4, "198.18.7.100"), (IPV6, "[2001:db8:7::100]")], ids=["IPv4", "IPv6"])
def test_an_address_in_a_url_has_brackets_where_it_needs_them(at: Addresses, wanted: str) -> None:
    assert at.in_url(at.public) == wanted
