"""What the objects of a cluster show of its addresses, and what an operator has to state; api_server.py too."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.kit.wholeip_objects import NOT_READY, READY, api_service, endpoint_slice, ip, node, service_range
from wholeip.mappings.addresses import parse_network
from wholeip.mappings.api_server import (
    API_SERVICE,
    API_SLICES,
    SERVICE_RANGES,
    ApiService,
    ServiceRange,
    cluster_ips_of,
    endpoints_of,
    networks_of,
)
from wholeip.mappings.cluster_networks import ClusterNetworks, StatedNetworks
from wholeip.mappings.nodes import NODES

UNREADABLE = Unreadable(ObjectMeta("kubernetes", "default"), "Expected `str`")


def stated(*networks: str, **options: Any) -> StatedNetworks:
    return StatedNetworks(tuple(map(parse_network, networks)), **options)


def test_cluster_ips_endpoints_and_ranges_are_read_and_mistakes_are_ignored() -> None:
    assert cluster_ips_of(api_service("10.96.0.1", "fd00::1")) == {ip("10.96.0.1"), ip("fd00::1")}
    assert cluster_ips_of(api_service("None", None, "", "10.96.0.1/32")) == frozenset()
    endpoints = endpoint_slice("kubernetes", ("192.0.2.1", READY), ("192.0.2.2", NOT_READY), ("127.0.0.1", READY))
    assert endpoints_of(endpoints) == {ip("192.0.2.1"), ip("192.0.2.2")}
    spelled = endpoint_slice("kubernetes", ("192.0.2.01", READY), ("::ffff:192.0.2.2", READY))
    assert endpoints_of(spelled) == {ip("192.0.2.1"), ip("192.0.2.2")}
    ranges = service_range("10.96.0.0/16", "fd00::/112", None, "10.96.0.1/33", "x")
    assert networks_of(ranges) == {parse_network("10.96.0.0/16"), parse_network("fd00::/112")}


@pytest.mark.parametrize("fields", [{}, {"spec": None}, {"spec": {}}])
def test_an_object_without_fields_shows_nothing(fields: dict[str, Any]) -> None:
    metadata = {"metadata": {"name": "kubernetes"}}
    assert cluster_ips_of(msgspec.convert(metadata | fields, ApiService)) == frozenset()
    assert networks_of(msgspec.convert(metadata | fields, ServiceRange)) == frozenset()


def test_an_unreadable_object_shows_nothing() -> None:
    assert cluster_ips_of(UNREADABLE) == endpoints_of(UNREADABLE) == frozenset()
    assert networks_of(UNREADABLE) == frozenset()


def test_each_watch_has_a_kind_of_its_own_and_ranges_may_be_missing() -> None:
    assert len({one.kind for one in (API_SERVICE, API_SLICES, SERVICE_RANGES, NODES)}) == 4
    assert SERVICE_RANGES.optional


def test_the_api_server_has_its_cluster_ip_its_endpoints_and_the_address_that_is_dialled() -> None:
    known = ClusterNetworks(stated(api_servers=frozenset({ip("198.51.100.1")})))
    assert known.change_api_services({"default/kubernetes": api_service("10.96.0.1")})
    assert known.change_api_slices({"default/kubernetes": endpoint_slice("kubernetes", ("192.0.2.1", READY))})
    assert known.protected().api_servers == {ip("198.51.100.1"), ip("10.96.0.1"), ip("192.0.2.1")}
    assert not known.change_api_services({"default/kubernetes": api_service("10.96.0.1")}), "nothing is different"
    assert known.change_api_slices({"default/kubernetes": None})
    assert known.protected().api_servers == {ip("198.51.100.1"), ip("10.96.0.1")}


@pytest.mark.parametrize(
    ("networks", "ranges", "guessed", "advised"),
    [
        pytest.param(["10.244.0.0/16"], [], {"10.96.0.0/24", "fd00:1::1200/120"}, True, id="not known"),
        pytest.param(["10.96.0.0/12", "fd00:1::/64"], [], set(), False, id="stated"),
        pytest.param(["10.244.0.0/16"], ["10.96.0.0/16", "fd00:1::/108"], set(), False, id="the cluster shows it"),
        pytest.param(["10.244.0.0/16"], ["10.96.0.0/16"], {"fd00:1::1200/120"}, True, id="of one family"),
    ],
)
def test_an_unknown_range_of_services_is_guessed_and_asked_for(
    networks: list[str], ranges: list[str], guessed: set[str], advised: bool
) -> None:
    known = ClusterNetworks(stated(*networks))
    known.change_api_services({"default/kubernetes": api_service("10.96.0.1", "fd00:1::1234")})
    known.change_ranges({"kubernetes": service_range(*ranges)})
    assert {str(one) for one in known.protected().around_api_server.networks} == guessed
    advice = list(known.advise())
    assert bool(advice) is advised
    assert all("--cluster-network" in one and "servicecidrs" in one for one in advice)


def test_a_protected_range_of_services_is_known_too() -> None:
    known = ClusterNetworks(StatedNetworks(protected=(parse_network("10.96.0.0/16"),)))
    known.change_api_services({"default/kubernetes": api_service("10.96.0.1")})
    known.change_nodes({"n1": node("n1", pods=["10.0.0.0/24"])})
    assert list(known.advise()) == []


@pytest.mark.parametrize(
    ("networks", "ranges", "advised"),
    [
        pytest.param([], [], True, id="nothing shows it"),
        pytest.param(["10.96.0.0/12"], [], True, id="that of the other family is stated"),
        pytest.param(["10.96.0.0/12", "fd00:1::/112"], [], False, id="stated"),
        pytest.param([], ["10.96.0.0/16"], False, id="the cluster shows its ranges, and has none"),
    ],
)
def test_the_second_range_of_services_is_asked_for_in_dual_stack(
    networks: list[str], ranges: list[str], advised: bool
) -> None:
    """The Service kubernetes has one address, in the first family."""
    known = ClusterNetworks(stated(*networks))
    known.change_nodes({"n1": node("n1", pods=["10.244.0.0/24", "fd00:244::/64"])})
    known.change_api_services({"default/kubernetes": api_service("10.96.0.1")})
    known.change_ranges({f"range-{number}": service_range(one) for number, one in enumerate(ranges)})
    assert any("IPv6 cluster IPs" in one for one in known.advise()) is advised
    assert not any("IPv4 cluster IPs" in one for one in known.advise())
