"""NetworkPolicies as an nftables ruleset, for a node whose CNI enforces none.

The law: as in the API, and the stricter variant of its options: a pod without a policy is unrestricted; a selected pod
may do only what one of its policies allows; between a pod and its own node only traffic from the node is always
allowed. Unsupported policies are rejected, never ignored. Pure.
https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

Object = Mapping[str, Any]

TABLE: Final = "inet policies"
FAMILIES: Final = ("ip", "ip6")
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


class Unenforceable(Exception):
    """A policy uses a feature that these rules do not support."""


def format_rules(pods: Iterable[Object], policies: Sequence[Object], namespaces: Iterable[Object]) -> str:
    """The whole ruleset for `nft -f`; it replaces the previous one in one transaction."""
    labels = {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in namespaces}
    living = [one for one in pods if address_of(one)]
    chains: dict[str, list[str]] = {}
    jumps: dict[str, list[tuple[str, str]]] = {"Ingress": [], "Egress": []}
    for pod in sorted(living, key=address_of):
        for direction, elements in jumps.items():
            selecting = [one for one in policies if selects(one, pod) and direction in types_of(one)]
            if selecting:
                name = f"{direction.lower()}-{address_of(pod).replace('.', '-').replace(':', '-')}"
                elements.extend((address, f"{address} : jump {name}") for address in addresses_of(pod))
                allowed = [rule for one in selecting for rule in _rules(one, pod, direction, living, labels)]
                chains[name] = [*dict.fromkeys(allowed), "counter drop"]
    return "\n".join([f"table {TABLE}", f"delete table {TABLE}", f"table {TABLE} {{", *_body(chains, jumps), "}", ""])


def address_of(pod: Object) -> str:
    """Its first address; empty if it has no address of its own (any more)."""
    return next(iter(addresses_of(pod)), "")


def addresses_of(pod: Object) -> list[str]:
    """Its own addresses, one for each family of the cluster."""
    status = pod.get("status") or {}
    if pod["spec"].get("hostNetwork") or status.get("phase") in _ENDED:
        return []
    first = [{"ip": status["podIP"]}] if status.get("podIP") else []
    return [one["ip"] for one in status.get("podIPs") or first]


def types_of(policy: Object) -> Sequence[str]:
    """The isolated directions."""
    spec = policy["spec"]
    return spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]


def selects(policy: Object, pod: Object) -> bool:
    """Whether it selects this pod."""
    same = policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same and matches(policy["spec"].get("podSelector") or {}, pod["metadata"].get("labels") or {})


def matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether labels match a selector; the empty one matches all."""
    wanted = (selector.get("matchLabels") or {}).items() <= labels.items()
    return wanted and all(_expressed(one, labels) for one in selector.get("matchExpressions") or ())


def _expressed(expression: Object, labels: Mapping[str, str]) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or ()
    if operator not in _OPERATORS:
        raise Unenforceable(f"operator {operator}")
    if operator in {"Exists", "DoesNotExist"}:
        return (key in labels) is (operator == "Exists")
    return (labels.get(key) in values) is (operator == "In")


def _rules(
    policy: Object, pod: Object, direction: str, pods: Sequence[Object], namespaces: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """The rules for what one policy allows a pod."""
    side, peers = ("saddr", "from") if direction == "Ingress" else ("daddr", "to")
    for rule in policy["spec"].get(direction.lower()) or ():
        for where in _peers(rule.get(peers) or (), side, policy, pods, namespaces):
            for port in rule.get("ports") or [None]:
                yield f"{where}{_port(port, pod, direction)}return"


def _peers(
    peers: Sequence[Object],
    side: str,
    policy: Object,
    pods: Sequence[Object],
    namespaces: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """The matches for the peers of a rule; one that matches everything if the rule names none."""
    if not peers:
        yield ""
    sources = _addresses([one for one in peers if "ipBlock" not in one], policy, pods, namespaces)
    for family, found in by_family(sources):
        yield f"{family} {side} {{ {', '.join(found)} }} "
    for block in (one["ipBlock"] for one in peers if "ipBlock" in one):
        excepted = block.get("except") or ()
        family = family_of(block["cidr"])
        without = f"{family} {side} != {{ {', '.join(excepted)} }} " if excepted else ""
        yield f"{family} {side} {block['cidr']} {without}"


def family_of(address: str) -> str:
    """The name of an address's or a range's family in a rule."""
    return "ip6" if ":" in address else "ip"


def by_family(addresses: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The addresses of each family, if there are any."""
    for family in FAMILIES:
        if found := [one for one in addresses if family_of(one) == family]:
            yield family, found


def _addresses(
    peers: Sequence[Object], policy: Object, pods: Sequence[Object], namespaces: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """The addresses of the selected pods, now."""
    found: set[str] = set()
    for peer in peers:
        for pod in pods:
            space = pod["metadata"]["namespace"]
            if "namespaceSelector" in peer:
                is_there = matches(peer["namespaceSelector"], namespaces.get(space, {}))
            else:
                is_there = space == policy["metadata"]["namespace"]
            if is_there and matches(peer.get("podSelector") or {}, pod["metadata"].get("labels") or {}):
                found.update(addresses_of(pod))
    return sorted(found)


def _port(port: Object | None, pod: Object, direction: str) -> str:
    if port is None:
        return ""
    protocol, number = port.get("protocol", "TCP").lower(), port.get("port")
    if isinstance(number, str) and (direction == "Egress" or "endPort" in port):
        raise Unenforceable(f"port {port}")
    if isinstance(number, str):
        numbers = [
            one["containerPort"]
            for container in pod["spec"]["containers"]
            for one in container.get("ports") or ()
            if one.get("name") == number and one.get("protocol", "TCP").lower() == protocol
        ]
        # A port that this pod does not have cannot be reached anyway.
        number = numbers[0] if numbers else 0
    if "endPort" in port:
        number = f"{number}-{port['endPort']}"
    return f"{protocol} dport {number} " if number is not None else f"meta l4proto {protocol} "


def _body(chains: Mapping[str, Sequence[str]], jumps: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[str]:
    for name, rules in chains.items():
        yield from _chain(name, rules)
    verdicts = {
        direction: [
            f"{family} {side} vmap {{ {', '.join(found)} }}"
            for family in FAMILIES
            if (found := [element for address, element in jumps[direction] if family_of(address) == family])
        ]
        for direction, side in (("Egress", "saddr"), ("Ingress", "daddr"))
    }
    # Without its neighbours' answers a pod of IPv6 reaches nothing.
    known = ["ct state established,related accept", "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept"]
    # After kube-proxy's translation: the addresses are those of pods.
    forward = ["type filter hook forward priority 10;", *known, *verdicts["Egress"], *verdicts["Ingress"]]
    yield from _chain("forward", forward)
    yield from _chain("input", ["type filter hook input priority 10;", *known, *verdicts["Egress"]])


def _chain(name: str, rules: Iterable[str]) -> Iterator[str]:
    yield f"  chain {name} {{"
    yield from (f"    {rule}" for rule in rules)
    yield "  }"
