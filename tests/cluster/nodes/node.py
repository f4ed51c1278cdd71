"""A node: its programs in their own network, process tree and mounts; the first one has the control plane too.

The law: all processes descend from one; when it is killed, the kernel ends the rest, pods included, and removes their
mounts and network. A folder remains, and empty control groups, which are removed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.cluster.nodes import cilium
from tests.cluster.nodes.commands import programs
from tests.cluster.nodes.configs import Place
from tests.cluster.nodes.namespaces import children_of
from tests.cluster.plan import BRIDGE, CILIUM_ALONE, Plan
from tests.deploy.image import PROJECT
from tests.kit.programs import built_versions, program

PROGRAMS: Final = (
    *("coredns", "etcd", "kube-apiserver", "containerd", "kube-controller-manager", "kube-scheduler"),
    *("kubelet", "kube-proxy", "kubectl"),
)
OF_KUBERNETES: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
START_SECONDS: Final = 120
# The output of pods may have any octets.
_TEXT: Final[dict[str, Any]] = {"capture_output": True, "text": True, "errors": "replace"}


class NodeFailed(Exception):
    """A program of the node failed; the message has the end of its log."""


@dataclass
class Node:
    """A running node."""

    place: Place
    pid: int
    find: Mapping[str, str]
    """The paths of programs by name."""
    cni: str = BRIDGE
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _logs: ExitStack = field(default_factory=ExitStack, repr=False)

    @property
    def folder(self) -> Path:
        return Path(self.place.folder)

    @property
    def name(self) -> str:
        return self.place.name

    def inside(self, *words: str) -> list[str]:
        """The command line that runs a command in the node's network and mounts, as its child."""
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", *words]

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command there."""
        done = subprocess.run(self.inside(*words), check=False, **_TEXT)
        if check and done.returncode != 0:
            raise NodeFailed(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done

    def import_image(self, archive: Path) -> None:
        """Give its containerd an image, as a registry would."""
        ctr = [program("ctr"), f"--address={self.folder}/containerd.sock", "--namespace=k8s.io"]
        self.run(*ctr, "images", "import", str(archive))

    def start(self, name: str) -> None:
        """Start one of the node's programs."""
        command = self.commands()[name]
        log = self._logs.enter_context((self.folder / f"{name}.log").open("ab"))
        # /sbin for nft and iptables, which kube-proxy and the CNI's plugins call by name.
        path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
        # A proxy of this machine knows no name of the scene.
        direct = {"NO_PROXY": "*", "no_proxy": "*"}
        environment = {**os.environ, **direct, "PATH": path, "PYTHONPATH": str(PROJECT)}
        self.processes[name] = subprocess.Popen(self.inside(*command), stdout=log, stderr=log, env=environment)

    def commands(self) -> dict[str, list[str]]:
        """The command lines of its programs by name."""
        bare = programs(self.place, find=self.find)
        if self.cni == BRIDGE:
            return bare
        return cilium.programs(self.place, bare, find=self.find, alone=self.cni == CILIUM_ALONE)

    def kill(self, name: str) -> None:
        """SIGKILL one of its programs, and wait for its end."""
        # nsenter is only the parent and passes no signal on.
        process = self.processes.pop(name)
        for child in children_of(process.pid):
            os.kill(child, signal.SIGKILL)
        process.wait()

    def wait_for(self, condition: Callable[[], bool], name: str, *, seconds: float = START_SECONDS) -> None:
        """Wait for a condition of a program. Raises NodeFailed."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.processes[name].poll() is not None or time.monotonic() > deadline:
                log = (self.folder / f"{name}.log").read_text(errors="replace")
                raise NodeFailed(f"{name} is not ready; the end of its log:\n{log[-3000:]}")
            time.sleep(0.1)

    def kubectl(self, *words: str, check: bool = True, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Kubectl as the administrator; `given` goes to its stdin."""
        command = [program("kubectl"), f"--kubeconfig={self.folder}/kubeconfig", *words]
        done = subprocess.run(self.inside(*command), input=given, check=False, **_TEXT)
        if check and done.returncode != 0:
            raise NodeFailed(f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done

    def is_api_ready(self) -> bool:
        return self.kubectl("get", "--raw=/readyz", check=False).returncode == 0

    def is_ready(self) -> bool:
        condition = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return self.kubectl("get", "node", self.name, "-o", condition, check=False).stdout == "True"


def found_programs(plan: Plan) -> dict[str, str]:
    """The paths of the programs, those of Kubernetes in the plan's version. Raises KeyError if that was not built."""
    more = cilium.PROGRAMS if plan.cni != BRIDGE else ()
    found = {name: program(name) for name in (*PROGRAMS, *more)} | {"python": sys.executable}
    if plan.kubernetes:
        found |= {name: built_versions(name)[plan.kubernetes] for name in OF_KUBERNETES}
    return found
