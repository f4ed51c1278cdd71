"""MetalLB on the scene's nodes, in its L2 mode: a controller that gives addresses, and a speaker on each node.

The law: installed from its own manifest; its pools are of the nodes' link. Nobody else writes the statuses of Services.
https://metallb.io/configuration/
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from tests.cluster.nodes.configs import UPLINK
from tests.cluster.nodes.node import NodeFailed
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.world.imported import bring_image
from tests.kit.programs import program

PROGRAMS: Final = ("metallb-controller", "metallb-speaker", "metallb-manifests")
"""Of `make peers` and `make world-peers`; the last one is a folder."""
SYSTEM: Final = "metallb-system"
"""The namespace of its manifest."""
VERSION: Final = "v0.15.2"
WEB: Final = "web"
"""The pool of the ingress controller's Service."""
OTHERS: Final = "others"
"""The pool of its neighbours."""
POOL_ANNOTATION: Final = "metallb.io/address-pool"
IMAGES: Final = {
    f"quay.io/metallb/controller:{VERSION}": "metallb-controller",
    f"quay.io/metallb/speaker:{VERSION}": "metallb-speaker",
}
_API: Final = "metallb.io/v1beta1"
_WEBHOOK_SECONDS: Final = 240.0
"""The kubelet reads the Secret of the certificate again about once a minute."""


def install(stage: Stage) -> None:
    """Install it as its page says, and wait for its webhook, which judges pools."""
    for name, of in IMAGES.items():
        bring_image(stage, name, of)
    stage.kubectl("apply", "-f", str(Path(program("metallb-manifests")) / "native.yaml"))
    stage.rolled_out("deployment/controller", "daemonset/speaker", namespace=SYSTEM)


def pool(name: str, addresses: Sequence[str]) -> dict[str, Any]:
    """An IPAddressPool; only Services that name it have its addresses."""
    spec = {"addresses": list(addresses), "autoAssign": name == OTHERS}
    return {"apiVersion": _API, "kind": "IPAddressPool", "metadata": _named(name), "spec": spec}


def advertisement(pools: Sequence[str]) -> dict[str, Any]:
    """The only L2Advertisement: the pools whose addresses the speakers announce."""
    spec = {"ipAddressPools": list(pools)}
    return {"apiVersion": _API, "kind": "L2Advertisement", "metadata": _named("link"), "spec": spec}


def _named(name: str) -> dict[str, str]:
    return {"name": name, "namespace": SYSTEM}


def configure(stage: Stage, *, web: str, announced: Sequence[str]) -> None:
    """The pools, with the address or range of the pool `web`, and the announced ones."""
    wanted = (
        pool(WEB, [web]),
        pool(OTHERS, [stage.at.neighbours]),
        advertisement(announced),
    )

    def is_taken() -> bool:
        try:
            for one in wanted:
                stage.apply(one)
        except NodeFailed as error:
            if "webhook" not in str(error):
                raise
            return False
        return True

    stage.eventually("a webhook that judges pools", is_taken, seconds=_WEBHOOK_SECONDS)


def first_of(span: str) -> str:
    """The first address of a range."""
    return all_of(span)[0]


def all_of(span: str) -> list[str]:
    """Every address of a range."""
    first, last = map(ip_address, span.split("-"))
    return [str(first + offset) for offset in range(int(last) - int(first) + 1)]


def entries_of(service: Mapping[str, Any]) -> list[dict[str, str]]:
    """The addresses in a Service's status, each with its ipMode."""
    found = service["status"].get("loadBalancer", {}).get("ingress", [])
    return [{key: one[key] for key in ("ip", "ipMode") if key in one} for one in found]


def writers_of(service: Mapping[str, Any]) -> set[str]:
    """The field managers that own addresses in its status."""
    managers = service["metadata"].get("managedFields", [])
    return {
        one["manager"]
        for one in managers
        if "f:ingress" in one.get("fieldsV1", {}).get("f:status", {}).get("f:loadBalancer", {})
    }


def until_address(stage: Stage, service: str, namespace: str, *, wanted: Sequence[str]) -> float:
    """Wait until a Service's status has one of these addresses."""

    def has_it() -> bool:
        found = entries_of(stage.get("service", service, "-n", namespace, "--show-managed-fields"))
        return [one.get("ip") for one in found] != [] and all(one.get("ip") in wanted for one in found)

    return stage.eventually(f"an address for {service}", has_it, seconds=60)


def announcer(stage: Stage, service: str) -> str:
    """The node that MetalLB says announces a Service's address; empty for none."""
    found = stage.get("servicel2statuses", "-n", SYSTEM)["items"]
    nodes = [one["status"]["node"] for one in found if one.get("status", {}).get("serviceName") == service]
    return str(nodes[0]) if len(nodes) == 1 else ""


def hardware_addresses(stage: Stage) -> dict[str, str]:
    """The hardware address of each node's device on the link, by the node's name."""
    found = {}
    for node in stage.nodes:
        (device,) = json.loads(node.run(program("ip"), "-j", "link", "show", "dev", UPLINK).stdout)
        found[node.name] = str(device["address"])
    return found


def parse_neighbours(listed: str, address: str) -> str:
    """The hardware address of a neighbour in `ip -j neigh`; empty if nobody has answered for it."""
    return next((one.get("lladdr", "") for one in json.loads(listed or "[]") if one.get("dst") == address), "")


def speaker_on(stage: Stage, node: str) -> str:
    """The name of its pod on a node."""
    pods = stage.get("pods", "-n", SYSTEM, "-l", "component=speaker")["items"]
    found = [one["metadata"]["name"] for one in pods if one["spec"]["nodeName"] == node]
    if len(found) != 1:
        raise StepFailed(f"speakers on {node}: {found}")
    return str(found[0])
