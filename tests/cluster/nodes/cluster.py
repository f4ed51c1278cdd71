"""A cluster: nodes on one link, the first of which has the control plane.

The law: the nodes' programs start in an order in which each finds what it needs; a node that was killed can start
again with the same name, addresses and folder, as a machine does after a power cut.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.cluster.addresses import Addresses, of_families
from tests.cluster.nodes import cilium
from tests.cluster.nodes.configs import Place
from tests.cluster.nodes.control_groups import HIERARCHIES, control_groups, member_of
from tests.cluster.nodes.link import Link, running_link
from tests.cluster.nodes.namespaces import UNSHARE, namespaces
from tests.cluster.nodes.node import PROGRAMS, Node, found_programs
from tests.cluster.nodes.preparing import bring_cilium, hide_folders, make_network, write_files
from tests.cluster.plan import BRIDGE, Plan
from tests.kit.apiserver import write_keys
from tests.kit.programs import find_program, program

TOOLS: Final = (
    "runc",
    "nft",
    "iptables-save",
    "haproxy",
    "ip",
    "nsenter",
    "buildah",
    "debian-base",
    "musl-gcc",
    "ctr",
    "dig",
    "openssl",
    "dnsendpoint",
    "docker-registry",
    "sshd",
    "ssh",
    "git",
)
_READY: Final[Mapping[str, Callable[[Node], bool]]] = {
    "etcd": lambda node: "ready to serve client requests" in (node.folder / "etcd.log").read_text(),
    "kube-apiserver": Node.is_api_ready,
    "containerd": lambda node: (node.folder / "containerd.sock").exists(),
    "kubelet": Node.is_ready,
}
"""The conditions to wait for before the next program starts."""


@dataclass
class Cluster:
    """Running nodes, the first one first."""

    plan: Plan
    link: Link
    folder: Path
    token: str
    nodes: dict[int, Node] = field(default_factory=dict)
    _running: dict[int, ExitStack] = field(default_factory=dict, repr=False)

    @property
    def at(self) -> Sequence[Addresses]:
        return of_families(self.plan.families)

    def start_node(self, number: int) -> Node:
        """Start a node and wait until it is ready."""
        place = self.place(number)
        running = self._running[number] = ExitStack()
        running.enter_context(control_groups(place.cgroup))
        if self.plan.cni != BRIDGE:
            running.enter_context(member_of(place.cgroup))
        forget_runtime(Path(place.folder))
        pid, logs = running.enter_context(namespaces()), running.enter_context(ExitStack())
        node = self.nodes[number] = Node(place, pid, found_programs(self.plan), self.plan.cni, _logs=logs)
        hide_folders(node)
        others = [one for one in range(1, self.plan.nodes + 1) if one != number]
        make_network(node, self.link, others=others)
        if self.plan.cni != BRIDGE:
            bring_cilium(node)
        for name in node.commands():
            if name == "cilium-agent":
                node.kubectl("apply", "--server-side", "--recursive", "-f", program("cilium-crds"))
            node.start(name)
            if name in _READY:
                node.wait_for(lambda is_ready=_READY[name]: is_ready(node), name)  # type: ignore[misc]
        return node

    def kill_node(self, number: int) -> None:
        """End all of a node at once, as a power cut does: its programs, its pods and its device on the link."""
        self.nodes.pop(number)
        self._running.pop(number).close()

    def place(self, number: int) -> Place:
        """What a node's files and commands depend on."""
        first = self.folder / "node-1"
        return Place(
            folder=str(self.folder / f"node-{number}"),
            number=number,
            at=self.at,
            mode=self.plan.mode,
            cgroup=f"/switchback-{os.getpid()}-{number}",
            token=self.token,
            first_folder=str(first),
        )


def forget_runtime(folder: Path) -> None:
    """Remove what a machine keeps in memory only, and has lost after a power cut."""
    shutil.rmtree(folder / "containerd" / "state", ignore_errors=True)
    for socket in folder.glob("containerd.sock*"):
        socket.unlink()


@contextmanager
def running_cluster(folder: Path, plan: Plan) -> Iterator[Cluster]:
    """The cluster of a plan, from the readiness of all its nodes; all files are in `folder`."""
    with running_link() as link:
        cluster = Cluster(plan, link, folder, secrets.token_hex(16))
        try:
            for number in range(1, plan.nodes + 1):
                write_files(cluster.place(number))
                if number == 1:
                    write_keys(folder / "node-1")
                cluster.start_node(number)
            yield cluster
        finally:
            for number in sorted(cluster.nodes, reverse=True):
                cluster.kill_node(number)


def missing(cni: str = BRIDGE, *, more: Sequence[str] = ()) -> list[str]:
    """The needed programs that this machine lacks; `more` are those of the world."""
    if cni != BRIDGE:
        more = (*more, *cilium.PROGRAMS, cilium.COMPILER)
    absent = [name for name in (*PROGRAMS, *TOOLS, *more) if find_program(name) is None]
    if not Path("/usr/lib/cni/bridge").exists():
        absent.append("containernetworking-plugins")
    if not os.access(HIERARCHIES, os.W_OK):
        absent.append(f"control groups ({HIERARCHIES} cannot be written)")
    if subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode != 0:
        absent.append("namespaces (unshare)")
    return absent
