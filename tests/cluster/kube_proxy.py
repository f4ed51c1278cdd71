"""The node's kube-proxy: another mode, and its rules in the kernel; or those of Cilium in its place.

The law: after a restart in another mode no rule of the former mode is left; kube-proxy removes them itself.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from tests.cluster import texts
from tests.cluster.node import CILIUM_ALONE
from tests.cluster.stage import Stage
from tests.kit.programs import program

CILIUM: Final = "Cilium"
"""In place of a mode."""
HEADLESS: Final = "None"
_CILIUM_MAP: Final = "/sys/fs/bpf/tc/globals/cilium_lb4_services_v2"
_PART: Final = re.compile(r"[^\n,{}]+")


def restart_in(stage: Stage, mode: str) -> None:
    """Restart it in this mode, and wait until it has its rules."""
    (former,) = {texts.NFTABLES, texts.IPTABLES} - {mode}
    # A new kube-proxy has no rule until it knows all Services.
    addresses = [one["spec"]["clusterIP"] for one in stage.get("services", "-A")["items"]]
    services = [one for one in addresses if one != HEADLESS]
    stage.node.kill("kube-proxy")
    config = texts.format_proxy(str(stage.node.folder), mode=mode)
    (stage.node.folder / "kube-proxy.yaml").write_text(config, encoding="utf-8")
    stage.node.start("kube-proxy")
    lasted = stage.eventually(
        f"rules of {mode}", lambda: all(one in str(rules_of(stage, mode)) for one in services), seconds=60
    )
    stage.eventually(f"no rule of {former}", lambda: not rules_of(stage, former), seconds=60)
    stage.say(f"kube-proxy has its rules in {mode} mode after {lasted:.1f} s, and none in {former} mode")


def mode_at_start(stage: Stage) -> str:
    """What carries connections to Services on this node."""
    return CILIUM if stage.node.cni == CILIUM_ALONE else texts.NFTABLES


def rules_of(stage: Stage, mode: str) -> frozenset[str]:
    """Its rules and the elements of its maps, without counters."""
    return _READERS[mode](stage)


def parse_nftables(listed: str) -> frozenset[str]:
    """The parts of a listed table: each element of a map is one, as is each rule without commas."""
    return frozenset(part.strip() for part in _PART.findall(listed) if part.strip())


def parse_iptables(saved: str) -> frozenset[str]:
    """The rules of its chains in the output of iptables-save."""
    return frozenset(line for line in saved.splitlines() if line.startswith("-A KUBE-"))


def parse_cilium(dumped: str) -> frozenset[str]:
    """The frontends `ADDRESS:PORT` in bpftool's JSON of Cilium's map of Services: address, port, and others follow."""
    keys = (bytes(int(octet, 16) for octet in entry["key"]) for entry in json.loads(dumped))
    return frozenset(f"{ipaddress.IPv4Address(key[:4])}:{int.from_bytes(key[4:6], 'big')}" for key in keys)


def _cilium(stage: Stage) -> frozenset[str]:
    return parse_cilium(stage.node.run(program("bpftool"), "--json", "map", "dump", "pinned", _CILIUM_MAP).stdout)


def _nftables(stage: Stage) -> frozenset[str]:
    listed = stage.node.run(program("nft"), "--stateless", "list", "table", "ip", "kube-proxy", check=False)
    return parse_nftables(listed.stdout)


def _iptables(stage: Stage) -> frozenset[str]:
    return parse_iptables(stage.node.run(program("iptables-save"), "-t", "nat").stdout)


_READERS: Final[Mapping[str, Callable[[Stage], frozenset[str]]]] = {
    texts.NFTABLES: _nftables,
    texts.IPTABLES: _iptables,
    CILIUM: _cilium,
}
