"""Which addresses of a cluster are refused, and which endpoints are no pods of it; networks.py too."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.wholeip_objects import ip
from wholeip.mappings.addresses import parse_network
from wholeip.mappings.networks import NetworkSet
from wholeip.mappings.protected import Protected
from wholeip.mappings.reports import Reason

CLUSTER_IPS = frozenset({ip("10.96.7.7")})


def networks(*texts: str) -> NetworkSet:
    return NetworkSet(map(parse_network, texts))


def cluster(**options: Any) -> Protected:
    given: dict[str, Any] = {
        "nodes": frozenset({ip("192.0.2.10"), ip("2001:db8::10")}),
        "api_servers": frozenset({ip("192.0.2.20"), ip("10.96.0.1")}),
        "protected": networks("198.51.100.0/24", "2001:db8:1::/48"),
        "stated": networks("10.0.0.0/8"),
        "pods": networks("172.16.0.0/24", "172.16.1.0/24", "fd00:1::/64"),
        "services": networks("172.20.0.0/16", "fd00:20::/112"),
    }
    return Protected(**given | options)


@pytest.mark.parametrize(
    ("address", "reason", "why"),
    [
        pytest.param("192.0.2.10", Reason.PROTECTED_ADDRESS, "a node's own", id="a node's"),
        pytest.param("2001:db8::10", Reason.PROTECTED_ADDRESS, "a node's own", id="a node's, IPv6"),
        pytest.param("192.0.2.20", Reason.CLUSTER_ADDRESS, "the API server's", id="the API server's"),
        pytest.param("10.96.0.1", Reason.CLUSTER_ADDRESS, "the API server's", id="the API server's cluster IP"),
        pytest.param("10.96.7.7", Reason.CLUSTER_ADDRESS, "the cluster IP of a Service", id="a Service's"),
        pytest.param("198.51.100.7", Reason.PROTECTED_ADDRESS, "198.51.100.0/24 is protected", id="--protect"),
        pytest.param("2001:db8:1::7", Reason.PROTECTED_ADDRESS, "2001:db8:1::/48 is", id="--protect, IPv6"),
        pytest.param("172.20.0.10", Reason.CLUSTER_ADDRESS, "172.20.0.0/16 has the cluster IPs", id="Services"),
        pytest.param("fd00:20::a", Reason.CLUSTER_ADDRESS, "fd00:20::/112 has the cluster", id="Services, IPv6"),
        pytest.param("172.16.1.255", Reason.CLUSTER_ADDRESS, "172.16.1.0/24 is a network of a node's", id="pods"),
        pytest.param("fd00:1::9", Reason.CLUSTER_ADDRESS, "fd00:1::/64 is a network of a node's", id="pods, IPv6"),
        pytest.param("10.1.2.3", Reason.CLUSTER_ADDRESS, "10.0.0.0/8 is a network of the cluster", id="stated"),
        pytest.param("192.0.2.11", None, None, id="beside a node"),
        pytest.param("198.51.101.7", None, None, id="beside a network"),
        pytest.param("172.16.2.0", None, None, id="beside the pods"),
        pytest.param("2001:db8::11", None, None, id="beside a node, IPv6"),
    ],
)
def test_addresses_of_the_cluster_are_refused_with_the_reason(
    address: str, reason: Reason | None, why: str | None
) -> None:
    refusal = cluster().refusal_of_address(ip(address), cluster_ips=CLUSTER_IPS)
    assert (refusal.reason if refusal else None) == reason
    assert (why or "") in (refusal.text if refusal else "")


def test_the_range_of_services_is_guessed_around_the_api_server_while_it_is_not_known() -> None:
    guessed = cluster(stated=NetworkSet(), around_api_server=networks("10.96.0.0/24"))
    refusal = guessed.refusal_of_address(ip("10.96.0.10"), cluster_ips=frozenset())
    assert refusal is not None
    assert refusal.reason is Reason.CLUSTER_ADDRESS
    assert "range of Services is not known" in refusal.text


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        pytest.param("10.9.0.5", None, id="allowed inside a stated network"),
        pytest.param("10.9.1.5", Reason.NOT_ALLOWED, id="beside it"),
        pytest.param("203.0.113.1", Reason.NOT_ALLOWED, id="anywhere else"),
        pytest.param("2001:db8:9::1", Reason.NOT_ALLOWED, id="a family that nothing allows"),
        pytest.param("10.9.0.1", Reason.CLUSTER_ADDRESS, id="allowed, but the API server's"),
        pytest.param("172.16.0.9", Reason.CLUSTER_ADDRESS, id="allowed, but of pods"),
        pytest.param("172.20.0.10", Reason.CLUSTER_ADDRESS, id="allowed, but of Services"),
    ],
)
def test_allowed_networks_are_the_only_ones_and_win_over_stated_networks_alone(
    address: str, reason: Reason | None
) -> None:
    allowing = cluster(allowed=networks("10.9.0.0/24", "172.16.0.0/12"), api_servers=frozenset({ip("10.9.0.1")}))
    refusal = allowing.refusal_of_address(ip(address), cluster_ips=frozenset())
    assert (refusal.reason if refusal else None) == reason


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param("172.16.0.5", None, id="of a node"),
        pytest.param("10.1.2.3", None, id="of a stated network"),
        pytest.param("8.8.8.8", Reason.FOREIGN_ENDPOINT, id="on the Internet"),
        pytest.param("192.168.1.1", Reason.FOREIGN_ENDPOINT, id="private, beside the cluster"),
        pytest.param("2001:4860:4860::8888", Reason.FOREIGN_ENDPOINT, id="on the Internet, IPv6"),
        pytest.param("192.0.2.10", Reason.PROTECTED_ADDRESS, id="a node"),
        pytest.param("10.96.0.1", Reason.CLUSTER_ADDRESS, id="the API server"),
        pytest.param("10.96.7.7", Reason.CLUSTER_ADDRESS, id="a Service"),
    ],
)
def test_an_endpoint_outside_the_cluster_is_no_pod(pod: str, reason: Reason | None) -> None:
    refusal = cluster().refusal_of_pod(ip(pod), cluster_ips=CLUSTER_IPS)
    assert (refusal.reason if refusal else None) == reason
    assert refusal is None or pod in refusal.text


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param("10.9.0.5", Reason.FOREIGN_ENDPOINT, id="in an exception from a stated network"),
        pytest.param("10.9.1.5", None, id="beside it"),
        pytest.param("10.244.0.5", None, id="allowed, and stated more exactly"),
        pytest.param("172.16.0.5", None, id="allowed, and of a node's pods"),
    ],
)
def test_an_address_that_is_for_load_balancers_is_no_pod(pod: str, reason: Reason | None) -> None:
    allowing = cluster(
        stated=networks("10.0.0.0/8", "10.244.0.0/16"),
        allowed=networks("10.9.0.0/24", "10.240.0.0/12", "172.16.0.0/12"),
    )
    refusal = allowing.refusal_of_pod(ip(pod), cluster_ips=frozenset())
    assert (refusal.reason if refusal else None) == reason


@pytest.mark.parametrize(
    ("pod", "refused"),
    [
        pytest.param("10.0.0.1", False, id="private"),
        pytest.param("fd00::1", False, id="private, IPv6"),
        pytest.param("100.64.0.1", False, id="shared"),
        pytest.param("8.8.8.8", True, id="public"),
        pytest.param("2001:4860:4860::8888", True, id="public, IPv6"),
    ],
)
def test_without_a_known_network_of_pods_only_public_endpoints_are_refused(pod: str, refused: bool) -> None:
    refusal = Protected().refusal_of_pod(ip(pod), cluster_ips=frozenset())
    assert (refusal is not None) is refused
    assert refusal is None or "set --cluster-network" in refusal.text


def test_a_known_network_of_one_family_says_nothing_of_the_other() -> None:
    one_family = Protected(pods=networks("10.0.0.0/24"))
    assert one_family.refusal_of_pod(ip("fd00::1"), cluster_ips=frozenset()) is None
    assert one_family.refusal_of_pod(ip("10.0.1.1"), cluster_ips=frozenset()) is not None


_NETWORKS = st.builds(
    lambda number, length: IPv4Network((number >> (32 - length) << (32 - length), length)),
    st.integers(0, 2**32 - 1),
    st.integers(0, 32),
)


@given(st.lists(_NETWORKS, max_size=8), st.integers(0, 2**32 - 1))
def test_a_set_finds_an_address_exactly_if_one_of_its_networks_has_it(given: list[Any], number: int) -> None:
    address = IPv4Address(number)
    found = NetworkSet(given).find(address)
    having = [one for one in given if address in one]
    assert (found in having) if having else found is None
    assert found is None or found.prefixlen == min(one.prefixlen for one in having)
    assert not NetworkSet(given).find(ip("2001:db8::1"))
