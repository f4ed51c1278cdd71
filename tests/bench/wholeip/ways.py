"""The ways from a client to a pod that are measured: without a mapping, with ours, and with the model's rules.

The law: on each, the same client, node and pod; only the rules of the node differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from tests.wholeip.scene.cluster import CLUSTER, NETWORK_PLUGIN, Cluster, address, balanced
from tests.wholeip.scene.cozy_proxy import COZY_PROXY
from wholeip.mappings.mapping import Mapping
from wholeip.ruleset.ruleset import format_ruleset, make_ruleset


@dataclass(frozen=True, slots=True)
class Way:
    """What the node has, and whom the client asks."""

    name: str
    about: str
    rules: str
    target: str


def make_mappings(count: int) -> list[Mapping]:
    """Whole addresses of IPv4, one in a hundred on this node; the first is that of pod a, which alone there is."""
    first = Mapping(
        "default/a", ip_address(balanced("a", 4)), ip_address(address("a", 4)), None, icmp=False, egress=True
    )
    return [first, *(_mapping(number) for number in range(count - 1))]


def _mapping(number: int) -> Mapping:
    low = f"{number // 250}.{number % 250 + 1}"
    return Mapping(
        f"default/vm-{number}",
        ip_address(f"198.18.{low}"),
        ip_address(f"10.100.{low}"),
        opened=None,
        icmp=False,
        egress=True,
        here=number % 100 == 0,
    )


def _ours(count: int) -> str:
    return NETWORK_PLUGIN + format_ruleset(make_ruleset(make_mappings(count), cluster=CLUSTER))


WAYS: Final = (
    Way("bare", "the pod's own address, no rules at all", "", address("a", 4)),
    Way("tracked", "the pod's own address, conntrack and masquerade as on any node", NETWORK_PLUGIN, address("a", 4)),
    Way("ours", "a whole address, one mapping", _ours(1), balanced("a", 4)),
    Way("ours 10,000", "a whole address, one of 10,000 mappings", _ours(10_000), balanced("a", 4)),
    Way("stateless", "a whole address by cozy-proxy's chains", NETWORK_PLUGIN + COZY_PROXY, balanced("a", 4)),
)


def take(made: Cluster, way: Way) -> None:
    """Give the node these rules and no others, and forget the flows of others."""
    made.node.run("nft", "flush", "ruleset")
    if way.rules:
        made.node.run("nft", "-f", "-", script=way.rules)
        made.node.run("conntrack", "-F")
