"""Cilium as the node's network, instead of the bridge: a CNI that enforces network policies itself.

The law: pods get addresses of the node's range and are routed; kube-proxy stays, so that a load balancer's address is
short-circuited as before, or the agent replaces it. Pure. https://docs.cilium.io/en/v1.20/cmdref/cilium-agent/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from tests.cluster.nodes.configs import UPLINK, Place

PROGRAMS: Final = ("cilium-agent", "cilium-cni", "cilium-bpf", "cilium-crds")
"""The programs of `scripts/peers.sh --cilium`."""
COMPILER: Final = "clang-19"
"""The agent compiles its programs for the kernel on the node, by the name `clang`. It needs 18.1 or later."""
COMPILERS: Final = "cilium-compilers"
"""The folder in which this name is the compiler."""
PLUGINS: Final = "cni-bin"
"""The folder of the CNI plugins that containerd runs."""
LIBRARY: Final = "cilium-lib"
"""The folder with the sources of these programs."""
CGROUPS: Final = "/run/cilium/cgroupv2"
"""The node's control group, whose processes' connections the agent redirects."""


def format_network(folder: str) -> str:
    """The CNI configuration."""
    plugin = {"type": "cilium-cni", "enable-debug": False, "log-file": f"{folder}/cilium-cni.log"}
    return json.dumps({"cniVersion": "0.3.1", "name": "cilium", "plugins": [plugin]}, indent=1)


def programs(
    place: Place, bare: Mapping[str, list[str]], *, find: Mapping[str, str], alone: bool = False
) -> dict[str, list[str]]:
    """A node's command lines with the agent, without our enforcer, and without kube-proxy if the agent is alone."""
    without = {"enforcer", "kube-proxy"} if alone else {"enforcer"}
    changed = {name: command for name, command in bare.items() if name not in without}
    ranges = ["--allocate-node-cidrs", f"--cluster-cidr={place.at[0].pods}"]
    if "kube-controller-manager" in changed:
        changed["kube-controller-manager"] = [*changed["kube-controller-manager"], *ranges]
    return {**changed, "cilium-agent": agent(place, find=find, alone=alone)}


def agent(place: Place, *, find: Mapping[str, str], alone: bool = False) -> list[str]:
    """The agent's command line; alone, it carries connections to Services too."""
    folder, pods = place.folder, place.at[0].pods
    return [
        *("env", f"K8S_NODE_NAME={place.name}", "CILIUM_K8S_NAMESPACE=kube-system"),
        *(f"PATH={folder}/{COMPILERS}:/usr/sbin:/usr/bin:/sbin:/bin", find["cilium-agent"]),
        f"--k8s-kubeconfig-path={folder}/kubeconfig",
        *("--ipam=kubernetes", "--identity-allocation-mode=crd", f"--kube-proxy-replacement={str(alone).lower()}"),
        *("--enable-ipv4=true", "--enable-ipv6=false", "--enable-ipv4-masquerade=false"),
        *("--routing-mode=native", f"--ipv4-native-routing-cidr={pods}", f"--devices={UPLINK}"),
        *("--enable-l7-proxy=false", "--enable-hubble=false"),
        *("--enable-health-checking=false", "--enable-endpoint-health-checking=false"),
        *("--bpf-root=/sys/fs/bpf", f"--lib-dir={folder}/{LIBRARY}", f"--cgroup-root={CGROUPS}"),
        *("--cni-exclusive=false", "--preallocate-bpf-maps=false"),
    ]
