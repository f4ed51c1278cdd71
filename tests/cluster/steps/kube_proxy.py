"""The node's kube-proxy: another mode, and its rules in the kernel; or those of Cilium in its place.

The law: after a restart in another mode no rule of the former mode is left; kube-proxy removes them itself.
"""

from __future__ import annotations

import ipaddress
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from tests.cluster.addresses import Family
from tests.cluster.nodes.configs import IPTABLES, MODES, NFTABLES, format_proxy
from tests.cluster.nodes.node import Node
from tests.cluster.plan import CILIUM_ALONE
from tests.cluster.stage import Stage, StepFailed
from tests.kit.programs import program

CILIUM: Final = "Cilium"
"""In place of a mode."""
HEADLESS: Final = "None"
_CILIUM_MAP: Final = "/sys/fs/bpf/tc/globals/cilium_lb4_services_v2"
_QUIET: Final = 3.0
"""Seconds: kube-proxy follows a change of endpoints within one."""
_PART: Final = re.compile(r"[^\n,{}]+")


def restart_in(stage: Stage, mode: str) -> None:
    """Restart it in this mode, and wait until it has its rules."""
    (former,) = set(MODES) - {mode}
    # A new kube-proxy has no rule until it knows all Services.
    addresses = [one["spec"]["clusterIP"] for one in stage.get("services", "-A")["items"]]
    services = [one for one in addresses if one != HEADLESS]
    for node in stage.nodes:
        node.kill("kube-proxy")
        (node.folder / "kube-proxy.yaml").write_text(format_proxy(replace(node.place, mode=mode)), encoding="utf-8")
        node.start("kube-proxy")

    def has_rules(node: Node) -> bool:
        return all(one in str(_READERS[mode](node, stage.at.family)) for one in services)

    lasted = stage.eventually(f"rules of {mode}", lambda: all(map(has_rules, stage.nodes)), seconds=60)
    stage.eventually(f"no rule of {former}", lambda: not rules_of(stage, former), seconds=60)
    stage.say(f"kube-proxy has its rules in {mode} mode after {lasted:.1f} s, and none in {former} mode")


def other_mode(stage: Stage) -> str:
    """The mode in which kube-proxy did not start."""
    (other,) = set(MODES) - {stage.plan.mode}
    return other


def mode_at_start(stage: Stage) -> str:
    """What carries connections to Services on this node."""
    return CILIUM if stage.plan.cni == CILIUM_ALONE else stage.plan.mode


def rules_of(stage: Stage, mode: str) -> frozenset[str]:
    """Its rules and the elements of its maps on all nodes, without counters; each with the node's name."""
    return frozenset(f"{node.name}: {rule}" for node in stage.nodes for rule in _READERS[mode](node, stage.at.family))


def rules_at_rest(stage: Stage, mode: str) -> frozenset[str]:
    """The same, once nothing has changed them for some seconds: the step before may have changed endpoints."""
    seen, since = rules_of(stage, mode), time.monotonic()

    def rest() -> bool:
        nonlocal seen, since
        before, seen = seen, rules_of(stage, mode)
        if seen != before:
            since = time.monotonic()
        return time.monotonic() - since >= _QUIET

    stage.eventually("rules at rest", rest, seconds=60)
    return seen


def expect_rules(stage: Stage, mode: str, wanted: frozenset[str]) -> None:
    """Wait until the rules are these; a failure names those that differ."""

    def differing() -> list[str]:
        return sorted(rules_of(stage, mode) ^ wanted)

    try:
        stage.eventually("the rules as before", lambda: not differing(), seconds=30)
    except StepFailed as error:
        raise StepFailed(f"{error}; these differ: {'; '.join(differing())}") from None


def parse_nftables(listed: str) -> frozenset[str]:
    """The parts of a listed table: each element of a map is one, as is each rule without commas.

    No chain's name: kube-proxy empties a chain at once, and deletes it at some later change.
    """
    parts = (part.strip() for part in _PART.findall(listed))
    return frozenset(part for part in parts if part and not part.startswith("chain "))


def parse_iptables(saved: str) -> frozenset[str]:
    """The rules of its chains in the output of iptables-save."""
    return frozenset(line for line in saved.splitlines() if line.startswith("-A KUBE-"))


def parse_cilium(dumped: str) -> frozenset[str]:
    """The frontends `ADDRESS:PORT` in bpftool's JSON of Cilium's map of Services: address, port, and others follow."""
    keys = (bytes(int(octet, 16) for octet in entry["key"]) for entry in json.loads(dumped))
    return frozenset(f"{ipaddress.IPv4Address(key[:4])}:{int.from_bytes(key[4:6], 'big')}" for key in keys)


def _cilium(node: Node, _: Family) -> frozenset[str]:
    return parse_cilium(node.run(program("bpftool"), "--json", "map", "dump", "pinned", _CILIUM_MAP).stdout)


def _nftables(node: Node, family: Family) -> frozenset[str]:
    table = ("table", "ip6" if family == 6 else "ip", "kube-proxy")  # the family
    listed = node.run(program("nft"), "--stateless", "list", *table, check=False)
    return parse_nftables(listed.stdout)


def _iptables(node: Node, family: Family) -> frozenset[str]:
    saved = node.run(program("ip6tables-save" if family == 6 else "iptables-save"), "-t", "nat")  # the family
    return parse_iptables(saved.stdout)


_READERS: Final[Mapping[str, Callable[[Node, Family], frozenset[str]]]] = {
    NFTABLES: _nftables,
    IPTABLES: _iptables,
    CILIUM: _cilium,
}
