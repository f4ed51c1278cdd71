"""A client, two nodes on one segment, three pods on the first node and one on the second, each in a network of its own.

    client .2 ─┬─ .11 node ── a, b, c
               └─ .12 far_node ── far

The load balancer sends each of its addresses to the node of its pod; each node routes the other's pods to the other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from tests.wholeip.scene.place import Place, place
from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.ruleset.ruleset import TABLE, format_ruleset, make_ruleset

SEGMENT: Final = {4: "198.51.100.", 6: "2001:db8:51::"}
BALANCED: Final = {4: "203.0.113.", 6: "2001:db8:113::"}
PODS: Final = {4: "10.244.0.", 6: "fd00:244::"}
FAR_PODS: Final = {4: "10.245.0.", 6: "fd00:245::"}
CLUSTER: Final = tuple(
    ip_network(text)
    for text in (
        *("10.244.0.0/15", "198.51.100.11/32", "198.51.100.12/32"),
        *("fd00:244::/64", "fd00:245::/64", "2001:db8:51::11/128", "2001:db8:51::12/128"),
    )
)
OPEN_PORT, CLOSED_PORT = 8080, 8081
"""Every place serves both, by TCP and UDP; the filtered pod's Service lists the first alone."""
FAMILIES: Final = (4, 6)
_WAIT_SECONDS: Final = 20.0
_NUMBERS: Final = {"client": "2", "node": "11", "far_node": "12", "a": "2", "b": "3", "c": "4", "far": "2"}
_BALANCED_NUMBERS: Final = {"a": "2", "b": "3", "far": "4", "a2": "5"}
# What a pod sends out of the cluster gets its node's address, at the priority that such rules have.
NETWORK_PLUGIN: Final = f"""
table inet network_plugin {{
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr 10.244.0.0/15 ip daddr != {{ {", ".join(str(one) for one in CLUSTER if one.version == 4)} }} masquerade
        ip6 saddr fd00::/16 ip6 daddr != {{ {", ".join(str(one) for one in CLUSTER if one.version == 6)} }} masquerade
    }}
}}
"""


@dataclass(frozen=True)
class Cluster:
    """The places by name."""

    client: Place
    node: Place
    far_node: Place
    a: Place
    b: Place
    c: Place
    far: Place

    def place(self, name: str) -> Place:
        """By its name, as tables of tests have it."""
        found = getattr(self, name)
        assert isinstance(found, Place)
        return found


def address(name: str, family: int) -> str:
    """A place's own address."""
    if name == "far":
        return FAR_PODS[family] + _NUMBERS[name]
    return (PODS if name in {"a", "b", "c"} else SEGMENT)[family] + _NUMBERS[name]


def balanced(name: str, family: int) -> str:
    """The load balancer's address of a pod; `a2` is the second of pod a."""
    return BALANCED[family] + _BALANCED_NUMBERS[name]


def mapping(
    name: str, family: int, pod: str = "", *, opened: frozenset[OpenPort] | None = None, **options: bool
) -> Mapping:
    """The load balancer's address of this name to a pod, of the same name where none is given."""
    return Mapping(
        f"default/{name}",
        _parsed(balanced(name, family)),
        _parsed(address(pod or name, family)),
        opened=opened,
        icmp=options.get("icmp", False),
        egress=options.get("egress", True),
        here=options.get("here", True),
    )


def mappings(*, on: str = "node") -> list[Mapping]:
    """Pod a has all of an address and a second one, b one port of each protocol of its own, far all of its own."""
    opened = frozenset(OpenPort(protocol, OPEN_PORT) for protocol in ("tcp", "udp", "sctp"))
    near = on == "node"
    return [
        one
        for family in FAMILIES
        for one in (
            mapping("a", family, here=near),
            mapping("a2", family, "a", egress=False, here=near),
            mapping("b", family, opened=opened, here=near),
            mapping("far", family, here=not near),
        )
    ]


def _parsed(text: str) -> IPv4Address | IPv6Address:
    return ip_address(text)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """All of it, with servers in every place."""
    with ExitStack() as stack:
        names = ("client", "node", "far_node", "a", "b", "c", "far")
        made = Cluster(*(stack.enter_context(place()) for _ in names))
        _join_segment(made)
        _join_pods(made, "node", ("a", "b", "c"))
        _join_pods(made, "far_node", ("far",))
        _route(made)
        for name in names:
            for port in (OPEN_PORT, CLOSED_PORT):
                made.place(name).do("serve", port=port)
        yield made


def _join_segment(made: Cluster) -> None:
    for one in (made.client, made.node, made.far_node):
        one.sysctl(**{"ipv6/conf/all/accept_dad": 0, "ipv6/conf/default/accept_dad": 0})
    made.client.ip(
        f"""link set lo up
        link add segment type bridge
        link add near type veth peer name uplink netns {made.node.process.pid}
        link add other type veth peer name uplink netns {made.far_node.process.pid}
        link set near master segment
        link set other master segment
        link set near up
        link set other up
        link set segment up
        addr add {address("client", 4)}/24 dev segment
        addr add {address("client", 6)}/64 dev segment nodad
        """
    )
    for name in ("node", "far_node"):
        made.place(name).ip(
            f"""link set lo up
            link set uplink up
            addr add {address(name, 4)}/24 dev uplink
            addr add {address(name, 6)}/64 dev uplink nodad
            route add default via {address("client", 4)}
            route add default via {address("client", 6)}
            """
        )


def _join_pods(made: Cluster, on: str, names: Sequence[str]) -> None:
    """Point to point, as many network plugins do: a route to each pod, and a gateway that the node answers for."""
    node = made.place(on)
    node.sysctl(**{"ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1})
    node.ip("addr add 169.254.1.1/32 dev lo\n")
    node.run("nft", "-f", "-", script=NETWORK_PLUGIN)
    for name in names:
        pod = made.place(name)
        pod.sysctl(**{"ipv6/conf/all/accept_dad": 0, "ipv6/conf/default/accept_dad": 0})
        node.ip(
            f"""link add pod_{name} type veth peer name eth0 netns {pod.process.pid}
            link set pod_{name} up
            addr add fe80::1/64 dev pod_{name} nodad
            route add {address(name, 4)}/32 dev pod_{name} src {address(on, 4)}
            route add {address(name, 6)}/128 dev pod_{name} src {address(on, 6)}
            """
        )
        pod.ip(
            f"""link set lo up
            link set eth0 up
            addr add {address(name, 4)}/32 dev eth0
            addr add {address(name, 6)}/128 dev eth0 nodad
            route add 169.254.1.1 dev eth0
            route add default via 169.254.1.1
            route add default via fe80::1 dev eth0
            """
        )


def _route(made: Cluster) -> None:
    near, far = address("node", 4), address("far_node", 4)
    near6, far6 = address("node", 6), address("far_node", 6)
    made.client.ip(
        f"""route add {BALANCED[4]}0/24 via {near}
        route add {BALANCED[6]}/64 via {near6}
        route add {balanced("far", 4)}/32 via {far}
        route add {balanced("far", 6)}/128 via {far6}
        """
    )
    made.node.ip(f"route add {FAR_PODS[4]}0/24 via {far}\nroute add {FAR_PODS[6]}/64 via {far6}\n")
    made.far_node.ip(
        f"""route add {PODS[4]}0/24 via {near}
        route add {PODS[6]}/64 via {near6}
        route add {balanced("a", 4)}/32 via {near}
        route add {balanced("a", 6)}/128 via {near6}
        """
    )


def install(made: Cluster) -> None:
    """Give both nodes the table of all mappings, in place of whatever they had."""
    for name in ("node", "far_node"):
        ruleset = make_ruleset(mappings(on=name), cluster=CLUSTER)
        made.place(name).run("nft", "-f", "-", script=format_ruleset(ruleset))


def dropped(node: Place, chain: str = "refuse") -> int:
    """How many packets a chain of ours has dropped."""
    listing = json.loads(node.run("nft", "-j", "list", "chain", "inet", TABLE, chain))["nftables"]
    expressions = [one for item in listing for one in item.get("rule", {}).get("expr", ())]
    return sum(one["counter"]["packets"] for one in expressions if "counter" in one)


def wait_until(condition: Callable[[], bool]) -> None:
    """For what the kernel does a moment later."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
