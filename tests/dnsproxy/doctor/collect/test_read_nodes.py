"""Reading nodes: the networks of pods are known from what assigns them, or unknown."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.doctor.collect.read_nodes import find_pod_networks, read_nodes
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.model import Component
from tests.dnsproxy.doctor.collect.cluster_api import Api

NODES = ["10.244.0.0/24", "10.244.1.0/24"]


def component(name: str, **settings: str) -> Component:
    return Component(name, settings={key.replace("_", "-"): value for key, value in settings.items()})


PROXY = component("kube-proxy", clusterCIDR="10.244.0.0/16")
POOL = Component("calico", settings={"CALICO_IPV4POOL_CIDR": "192.168.0.0/16"})


@pytest.mark.parametrize(
    ("nodes", "components", "daemon_sets", "expected"),
    [
        pytest.param(NODES, [component("kube-proxy")], ["kube-proxy"], ("10.244.0.0/23",), id="nodes, collapsed"),
        pytest.param(["10.244.1.0/24"] * 3, [], [], ("10.244.1.0/24",), id="nodes, each once"),
        pytest.param(["10.0.1.0/24", "2001:db8::/64"], [], [], ("10.0.1.0/24", "2001:db8::/64"), id="both families"),
        pytest.param(NODES, [PROXY], ["kube-proxy"], ("10.244.0.0/16",), id="nodes within the setting of kube-proxy"),
        pytest.param([], [PROXY], ["kube-proxy"], ("10.244.0.0/16",), id="kube-proxy alone"),
        pytest.param(NODES, [component("cilium", ipam="kubernetes")], [], ("10.244.0.0/23",), id="cilium with nodes"),
        pytest.param(
            [], [component("cilium", ipam="cluster-pool", cluster_pool_ipv4_cidr="10.0.0.0/8")], [], ("10.0.0.0/8",),
            id="cilium with a pool",
        ),
        pytest.param(NODES, [component("cilium", ipam="cluster-pool")], [], (), id="cilium with an unread pool"),
        pytest.param(NODES, [component("cilium", ipam="eni")], [], (), id="cilium with networks of AWS"),
        pytest.param(NODES, [component("cilium")], [], (), id="cilium with unread settings"),
        pytest.param(NODES, [component("calico")], [], (), id="calico with unread pools"),
        pytest.param([], [POOL], [], ("192.168.0.0/16",), id="calico with a pool in its manifest"),
        pytest.param(NODES, [component("calico"), PROXY], [], ("10.244.0.0/16",), id="calico beside kube-proxy"),
        pytest.param(NODES, [PROXY], ["aws-node"], (), id="networks of AWS"),
        pytest.param(NODES, [], None, (), id="unread daemon sets"),
        pytest.param(["garbage", "", "10.0.0.0/99"], [], [], (), id="garbage"),
        pytest.param([], [], [], (), id="nothing"),
    ],
)  # fmt: skip
def test_networks_of_pods_are_never_guessed(
    nodes: list[str], components: list[Component], daemon_sets: list[str] | None, expected: tuple[str, ...]
) -> None:
    assert find_pod_networks(nodes, components, daemon_sets) == expected


def node(number: int, **spec: Any) -> Any:
    addresses = [
        {"type": "Hostname", "address": f"node-{number}"},
        {"type": "InternalIP", "address": f"192.0.2.{number}"},
        {"type": "ExternalIP", "address": f"198.51.100.{number}"},
        {"type": "InternalIP", "address": "garbage"},
    ]
    return {"metadata": {"name": f"n{number}"}, "spec": spec, "status": {"addresses": addresses}}


async def test_a_bounded_number_of_nodes_is_read_with_one_request() -> None:
    nodes = [node(number % 200, podCIDRs=[f"10.0.{number % 200}.0/24"]) for number in range(1000)]
    api = Api({"/api/v1/nodes": nodes})
    async with api.client() as client:
        found = await read_nodes(Reader(client))
    assert len(api.asked) == 1
    assert len(found.pod_networks) == 50
    assert set(found.addresses) == {f"192.0.2.{number}" for number in range(50)}


@pytest.mark.parametrize(
    ("nodes", "provider", "networks"),
    [
        ([node(1, podCIDR="10.0.1.0/24")], "", ("10.0.1.0/24",)),
        ([node(1, podCIDR="10.0.1.0/24", podCIDRs=["10.0.1.0/24", "2001:db8::/64"])], "",
         ("10.0.1.0/24", "2001:db8::/64")),
        ([node(1), node(2, providerID="hcloud://1")], "hcloud", ()),
        ([node(1, podCIDRs=None, providerID=None), {"metadata": {"name": "bare"}}], "", ()),
        ([], "", ()),
    ],
    ids=["one network", "both families", "provider of the second", "nulls", "no nodes"],
)  # fmt: skip
async def test_a_field_that_nodes_lack_is_empty(nodes: list[Any], provider: str, networks: tuple[str, ...]) -> None:
    async with Api({"/api/v1/nodes": nodes}).client() as client:
        found = await read_nodes(Reader(client))
    assert (found.provider, found.pod_networks) == (provider, networks)
