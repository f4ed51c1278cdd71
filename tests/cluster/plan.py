"""What a run of the scene is played on: families, nodes, data plane, versions.

The law: a frozen value; the scene reads it and nothing else about its stage. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.cluster.addresses import Family
from tests.cluster.nodes.configs import NFTABLES

BRIDGE: Final = "bridge"
"""The bridge that connects the pods."""
CILIUM: Final = "cilium"
CILIUM_ALONE: Final = "cilium-alone"
"""Cilium in place of kube-proxy too."""
CNIS: Final = (BRIDGE, CILIUM, CILIUM_ALONE)
WHOLE: Final = "whole"
"""The default scene."""
METALLB: Final = "metallb"
"""MetalLB gives the addresses."""
CONTROLLERS: Final = "controllers"
"""Every controller of the world side by side."""
UPGRADES: Final = "upgrades"
"""From the version before this one to this one and back, by kubectl and by Helm."""

COREDNS: Final = "coredns"
_MUTATING: Final = (1, 36)
FAMILIES: Final[Mapping[str, tuple[Family, ...]]] = {"ipv4": (4,), "ipv6": (6,), "dual": (4, 6)}


@dataclass(frozen=True)
class Plan:
    """A combination."""

    families: tuple[Family, ...] = (4,)
    """The primary one first."""
    nodes: int = 2
    mode: str = NFTABLES
    """Of kube-proxy."""
    cni: str = BRIDGE
    scene: str = WHOLE
    """Of SCENES in scenes.py."""
    world: bool = True
    """Whether the world's programs play too in the whole scene."""
    kubernetes: str = ""
    """The version of its programs on the nodes; the newest if empty."""
    coredns: str = COREDNS
    """Its name among the peers: `coredns`, `coredns-old` or `coredns-new`."""

    @property
    def has_mutating_policies(self) -> bool:
        """Whether the API server has MutatingAdmissionPolicy in its stable version: Kubernetes 1.36."""
        return not self.kubernetes or tuple(map(int, self.kubernetes.removeprefix("v").split("."))) >= _MUTATING


def make_plan(
    *, families: str, nodes: int, mode: str, cni: str, scene: str, kubernetes: str, coredns: str, world: bool = True
) -> Plan:
    """By the words of a command line or of the matrix. Cilium has one node; only the whole scene has the world."""
    is_bridge = cni == BRIDGE
    return Plan(
        families=FAMILIES[families],
        nodes=nodes if is_bridge else 1,
        mode=mode,
        cni=cni,
        scene=scene,
        world=world and is_bridge and scene == WHOLE,
        kubernetes=kubernetes,
        coredns=coredns,
    )
