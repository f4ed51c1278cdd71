"""The combinations of the scene, from matrix.toml.

The law: a row names what differs from the stage that CI plays; everything else has the default of Plan. Pure, except
that it reads that file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.cluster.nodes.configs import NFTABLES
from tests.cluster.plan import BRIDGE, COREDNS, WHOLE, Plan, make_plan

FILE: Final = Path(__file__).with_name("matrix.toml")


class Combination(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row."""

    name: str
    where: Literal["ci", "world"]
    families: Literal["ipv4", "ipv6", "dual"] = "ipv4"
    nodes: Literal[1, 2] = 2
    mode: Literal["nftables", "iptables"] = NFTABLES
    cni: Literal["bridge", "cilium", "cilium-alone"] = BRIDGE
    kubernetes: str = ""
    coredns: str = COREDNS
    scene: Literal["whole", "metallb", "controllers", "upgrades"] = WHOLE

    @property
    def flags(self) -> list[str]:
        """What `python -m tests.cluster` gets to play it."""
        return [
            *(f"--families={self.families}", f"--nodes={self.nodes}", f"--mode={self.mode}", f"--cni={self.cni}"),
            *(f"--coredns={self.coredns}", f"--kubernetes={self.kubernetes}", f"--scene={self.scene}"),
        ]

    @property
    def plan(self) -> Plan:
        """What it is played on."""
        return make_plan(
            families=self.families,
            nodes=self.nodes,
            mode=self.mode,
            cni=self.cni,
            scene=self.scene,
            kubernetes=self.kubernetes,
            coredns=self.coredns,
        )


class Absent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program that cannot be had."""

    program: str
    reason: str


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    combination: tuple[Combination, ...]
    absent: tuple[Absent, ...] = ()

    def find(self, name: str) -> Combination:
        """A row by its name. Raises KeyError."""
        return {one.name: one for one in self.combination}[name]


def load_matrix(file: Path = FILE) -> Matrix:
    """Raises msgspec.ValidationError for an unknown key or value."""
    return msgspec.toml.decode(file.read_bytes(), type=Matrix)
