"""Decides which tracked flows (conntrack) the mappings no longer allow, and which are older than a mapping.

The law: a flow ends only if it is known to be ours and wrong: it goes to a pod that no longer has its address, protocol
and port; it bypasses our rules although they would translate or drop it; it leaves with an address that is not its
pod's; or its pod began it to the outside before the pod got its address, and its next first packet would leave with
that address.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from wholeip.mappings.networks import NetworkSet
from wholeip.ruleset.ctnetlink import Flow
from wholeip.ruleset.ruleset import Ruleset

_ICMP: Final = {"v4": 1, "v6": 58}
_CONNECTIONS: Final = frozenset({6, 132})
"""TCP and SCTP: their peers know them by the address, so they cannot continue with another one."""


@dataclass(frozen=True, slots=True)
class NewEgress:
    """The pods of this node that may have flows from before they got their address."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    """The address with which a pod's connections leave, by pod."""
    inside: NetworkSet = field(default_factory=NetworkSet)
    """In these networks a pod keeps its own address."""
    connections: bool = False
    """Whether such connections (TCP, SCTP) end too; other flows always do."""


NO_EGRESS: Final = NewEgress()


def relevant_addresses(rulesets: Iterable[Ruleset | None]) -> Generator[None, None, frozenset[bytes]]:
    """The addresses that are or were ours, packed; in steps of an address."""
    return pack(
        address
        for ruleset in rulesets
        if ruleset is not None
        for version in ("v4", "v6")
        for address in ruleset.elements.get(f"addresses_{version}", ())
    )


def pack(addresses: Iterable[str]) -> Generator[None, None, frozenset[bytes]]:
    """Addresses as the kernel writes them; in steps of an address."""
    found = set()
    for address in addresses:
        found.add(ip_address(address).packed)
        yield
    return frozenset(found)


def find_ended(
    flows: Iterable[Flow], earlier: Sequence[Ruleset | None], after: Ruleset, egress: NewEgress
) -> Generator[None, None, list[Flow]]:
    """The flows that end after the changes from the earlier rulesets (None: unknown) to `after`; in steps of a flow."""
    found = []
    for flow in flows:
        if any(is_ended(flow, before, after) for before in earlier) or is_older(flow, egress):
            found.append(flow)
        yield
    return found


def is_ended(flow: Flow, before: Ruleset | None, after: Ruleset) -> bool:
    """Whether a flow is no longer allowed after the change from `before` (None: unknown) to `after`."""
    return _comes_in_wrongly(flow, before, after) or _leaves_wrongly(flow, before, after)


def is_older(flow: Flow, egress: NewEgress) -> bool:
    """Whether a flow began before its pod got the address with which such a flow leaves now."""
    address = egress.addresses.get(flow.source)
    if address is None or flow.reply_target == address or (flow.protocol in _CONNECTIONS and not egress.connections):
        return False
    # The rules see the target behind the translation of a Service's cluster IP.
    return egress.inside.find(ip_address(flow.reply_source)) is None


def _comes_in_wrongly(flow: Flow, before: Ruleset | None, after: Ruleset) -> bool:
    ours = _is_ours(flow.target, after)
    if ours and (pod := _pod(flow, after)) is not None:
        return pod != flow.reply_source
    if ours and flow.reply_source == flow.target:
        return True
    # Another program may translate an address that is no longer ours, or a port of it that is not: kube-proxy does for
    # another Service on the same address.
    if before is not None and _is_ours(flow.target, before):
        return _pod(flow, before) == flow.reply_source
    return ours and any(_egress(flow.reply_source, one) for one in (before, after) if one is not None)


def _leaves_wrongly(flow: Flow, before: Ruleset | None, after: Ruleset) -> bool:
    if flow.reply_target == flow.source or _is_ours(flow.target, after):
        return False  # not translated; or a pod that reaches itself, which _comes_in_wrongly decides
    if _egress(flow.source, after) == flow.reply_target:
        return False
    return _is_ours(flow.reply_target, after) or (
        before is not None and _egress(flow.source, before) == flow.reply_target
    )


def _is_ours(address: str, ruleset: Ruleset) -> bool:
    return address in ruleset.elements.get(f"addresses_{_version(address)}", ())


def _pod(flow: Flow, ruleset: Ruleset) -> str | None:
    """The pod that the chain `translate` chooses."""
    version = _version(flow.target)
    tables = [(f"ports_{version}", f"{flow.target} . {flow.protocol} . {flow.port}"), (f"whole_{version}", flow.target)]
    if flow.protocol == _ICMP[version]:
        tables.insert(1, (f"icmp_{version}", flow.target))
    return next((pod for name, key in tables if (pod := ruleset.elements.get(name, {}).get(key))), None)


def _egress(pod: str, ruleset: Ruleset) -> str | None:
    return ruleset.elements.get(f"egress_{_version(pod)}", {}).get(pod)


def _version(address: str) -> str:
    return "v6" if ":" in address else "v4"
