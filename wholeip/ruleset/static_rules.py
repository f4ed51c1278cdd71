"""The static part of the table: its sets, maps and chains, which do not depend on the mappings.

The law: a packet to one of our addresses is translated or dropped, never forwarded unchanged. A packet to a pod's own
address is never changed. Only maps and sets say which pod has an address.

Only the first packet of a flow goes through a chain of type nat; connection tracking (conntrack) translates the rest,
replies and the ICMP errors of the flow included. So a flow survives a change of the maps; probes and pod traffic that
use none of our addresses keep theirs; and a reply has the pod's own address when the kernel filters by reverse path,
which is why net.ipv4.conf.*.rp_filter may be 0, 1 or 2.

Priorities: kube-proxy's chains of type nat are at dstnat and srcnat (pkg/proxy/nftables/proxier.go,
nftablesBaseChains), as are those of iptables and of network plugins that masquerade. At one hook, the first chain that
translates a flow decides (nf_nat_inet_fn of the kernel), so our chains are at 5 before. The translation itself happens
at dstnat and srcnat whatever the chain's priority, so chains that need its result are at 5 after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

_DSTNAT: Final = -100
_SRCNAT: Final = 100
_DIGEST_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class Collection:
    """A set, or a map if it has values, with nft's names of the types."""

    name: str
    key: str
    value: str = ""
    interval: bool = False

    def identity(self) -> str:
        """Equal for two collections that accept the same elements."""
        kind = f"map {self.name} {self.key} : {self.value}" if self.value else f"set {self.name} {self.key}"
        return f"{kind} interval" if self.interval else kind


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and its purpose, which nft keeps as a comment."""

    text: str
    purpose: str

    def comment(self) -> str:
        """The purpose and a digest of the text, so that the table of another version differs."""
        return f"{self.purpose} ({sha256(self.text.encode()).hexdigest()[:_DIGEST_LENGTH]})"


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain; one without a hook is a jump target."""

    name: str
    rules: tuple[Rule, ...]
    kind: str = ""
    hook: str = ""
    priority: int = 0

    def identity(self) -> str:
        """Equal for two chains that the kernel calls at the same place."""
        if not self.hook:
            return f"chain {self.name}"
        return f"chain {self.name} {self.kind} {self.hook} {self.priority} accept"


def _collections() -> Iterator[Collection]:
    for version, address in (("v4", "ipv4_addr"), ("v6", "ipv6_addr")):
        yield Collection(f"addresses_{version}", address)
        yield Collection(f"whole_{version}", address, address)
        yield Collection(f"ports_{version}", f"{address} . inet_proto . inet_service", address)
        yield Collection(f"icmp_{version}", address, address)
        yield Collection(f"egress_{version}", address, address)
        yield Collection(f"itself_{version}", f"{address} . {address}", address)
        yield Collection(f"here_{version}", address)
        yield Collection(f"elsewhere_{version}", address)
        yield Collection(f"cluster_{version}", address, interval=True)


def _translate() -> Iterator[Rule]:
    for ip, version, icmp in (("ip", "v4", "icmp"), ("ip6", "v6", "icmpv6")):
        to = f"dnat {ip} to {ip} daddr"
        yield Rule(f"{to} . meta l4proto . th dport map @ports_{version}", "ports that a Service lists")
        yield Rule(f"meta l4proto {icmp} {to} map @icmp_{version}", "ping, where a Service allows it")
        yield Rule(f"{to} map @whole_{version}", "everything to a whole address")


def _refuse() -> Iterator[Rule]:
    # A node that announces an address has it, and gets neighbour discovery at that address.
    yield Rule("icmpv6 type { 133, 134, 135, 136, 137 } fib daddr type local return", "neighbour discovery")
    # Replies to another node, which translated the pod's connection; ICMP errors have this direction too.
    yield Rule("ct direction reply return", "replies to a pod of another node")
    for ip, version in (("ip", "v4"), ("ip6", "v6")):
        yield Rule(f"{ip} daddr @addresses_{version} counter drop", "not translated, so not allowed")


def _source() -> Iterator[Rule]:
    for ip, version in (("ip", "v4"), ("ip6", "v6")):
        ours = f"ct original {ip} daddr @addresses_{version}"
        outside = f"{ip} daddr != @cluster_{version}"
        # A pod that reaches itself would get a packet from its own address, which hosts drop.
        itself = f"{ip} saddr . {ip} daddr map @itself_{version}"
        yield Rule(f"{ours} snat {ip} to {itself}", "from a pod to an address of its own")
        # Only to pods of ours: kube-proxy may serve another Service on the address, and its pods see their clients.
        yield Rule(
            f"{ours} {ip} daddr @elsewhere_{version} {ip} saddr != @cluster_{version} masquerade",
            "from outside to a pod on another node: the reply must come back",
        )
        # Traffic of the node itself keeps its address, even if a pod shares it.
        egress = f"snat {ip} to {ip} saddr map @egress_{version}"
        yield Rule(f"{outside} fib saddr type != local {egress}", "what a pod begins")


def _untracked() -> Iterator[Rule]:
    # A packet that fits no flow is not translated; with the pod's own address it would reset the flow at the peer.
    for ip, version in (("ip", "v4"), ("ip6", "v6")):
        yield Rule(
            f"ct state invalid {ip} saddr @here_{version} {ip} daddr != @cluster_{version} counter drop",
            "fits no flow, so it would leave with the pod's address",
        )


COLLECTIONS: Final = tuple(_collections())
CHAINS: Final = (
    Chain("translate", tuple(_translate())),
    Chain("refuse", tuple(_refuse())),
    Chain("prerouting", (Rule("jump translate", "from others"),), "nat", "prerouting", _DSTNAT - 5),
    Chain("output", (Rule("jump translate", "from this node"),), "nat", "output", _DSTNAT - 5),
    Chain("translated", (Rule("jump refuse", "from others"),), "filter", "prerouting", _DSTNAT + 5),
    Chain("translated_output", (Rule("jump refuse", "from this node"),), "filter", "output", _DSTNAT + 5),
    Chain("untracked", tuple(_untracked()), "filter", "postrouting", _SRCNAT + 5),
    Chain("postrouting", tuple(_source()), "nat", "postrouting", _SRCNAT - 5),
)


def static_part() -> frozenset[str]:
    """Identifies the static part, in a form that can be read from the kernel too."""
    return frozenset(_identities())


def rule_identity(chain: str, index: int, comment: str) -> str:
    """A rule at its position."""
    return f"rule {chain} {index} {comment}"


def _identities() -> Iterator[str]:
    yield from (collection.identity() for collection in COLLECTIONS)
    for chain in CHAINS:
        yield chain.identity()
        yield from (rule_identity(chain.name, index, rule.comment()) for index, rule in enumerate(chain.rules))
