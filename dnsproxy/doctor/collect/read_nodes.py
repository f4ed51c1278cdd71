"""Reads nodes: the provider, the addresses of the nodes, and the networks of the pods.

The law: one request for the first nodes. The networks are never guessed: a CNI plugin that assigns addresses itself
makes the networks in the nodes' specs void, and unless its own setting was read, the networks stay unknown. Tested in
tests/dnsproxy/doctor/collect/test_read_nodes.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network
from typing import Final

from dnsproxy.doctor.collect.data_plane_workloads import CALICO
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.collect.structs import Node
from dnsproxy.doctor.facts.model import Component
from dnsproxy.doctor.judge.short_circuit import CILIUM, KUBE_PROXY

MOST_NODES: Final = 50
OWN_IPAM: Final = frozenset(["aws-node", "kube-ovn-cni", "ovnkube-node", "terway", "terway-eniip", "weave-net"])
"""DaemonSets of plugins that take no notice of the networks in the nodes' specs."""
_OWN_NETWORKS: Final = {
    KUBE_PROXY: ("clusterCIDR",),
    CILIUM: ("cluster-pool-ipv4-cidr", "cluster-pool-ipv6-cidr"),
    CALICO: ("CALICO_IPV4POOL_CIDR", "CALICO_IPV6POOL_CIDR"),
}
"""The settings of components that name networks of pods."""
_KUBERNETES: Final = "kubernetes"
_POOL: Final = "cluster-pool"
"""Cilium's IPAM modes whose networks are in the nodes' specs, or in its ConfigMap; the others use further objects.
https://docs.cilium.io/en/v1.18/network/concepts/ipam/"""


@dataclass(frozen=True, slots=True)
class Nodes:
    """What the first nodes show."""

    provider: str = ""
    """The scheme of a providerID: `hcloud` of `hcloud://123`; empty if no node has one."""
    addresses: tuple[str, ...] = ()
    """Their internal addresses, sorted."""
    pod_networks: tuple[str, ...] = ()
    """The networks in their specs, in their order."""


async def read_nodes(reader: Reader) -> Nodes:
    """The first nodes."""
    nodes = await reader.list("/api/v1/nodes", Node, "list nodes", most=MOST_NODES) or []
    named = next((node.spec.provider_id for node in nodes if node.spec and node.spec.provider_id), "")
    addresses = {address for node in nodes for address in _addresses(node)}
    networks = [network for node in nodes if node.spec for network in node.spec.pod_cidrs or (node.spec.pod_cidr,)]
    return Nodes(
        re.split(r"[:.]", named, maxsplit=1)[0],
        tuple(sorted(addresses)),
        tuple(network for network in networks if network),
    )


def _addresses(node: Node) -> Iterator[str]:
    for one in (node.status.addresses or ()) if node.status else ():
        if one.type == "InternalIP" and one.address and _is_address(one.address):
            yield one.address


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def find_pod_networks(
    nodes: Sequence[str], components: Iterable[Component], daemon_sets: Iterable[str] | None
) -> tuple[str, ...]:
    """The networks of the pods, collapsed; empty if unknown.

    `nodes`: the networks in the nodes' specs; `daemon_sets`: the names of all DaemonSets, None if they are unknown. A
    setting may name more than the pods use, which is harmless: a judgement needs all of the networks.
    """
    found = {component.name: component.settings for component in components}
    own = [settings[key] for name, settings in found.items() for key in _OWN_NETWORKS.get(name, ()) if key in settings]
    ipam = found[CILIUM].get("ipam", "") if CILIUM in found else _KUBERNETES
    if daemon_sets is None or ipam not in (_KUBERNETES, _POOL) or not OWN_IPAM.isdisjoint(daemon_sets):
        return ()
    if ipam == _POOL or CALICO in found:
        return _collapse([*nodes, *own]) if own else ()
    return _collapse([*nodes, *own])


def _collapse(texts: Iterable[str]) -> tuple[str, ...]:
    networks = [network for text in texts for network in _parse(text)]
    v4 = collapse_addresses(one for one in networks if isinstance(one, IPv4Network))
    v6 = collapse_addresses(one for one in networks if isinstance(one, IPv6Network))
    return (*map(str, v4), *map(str, v6))


def _parse(text: str) -> Iterator[IPv4Network | IPv6Network]:
    for word in text.replace(",", " ").split():
        try:
            yield ip_network(word, strict=False)
        except ValueError:
            continue
