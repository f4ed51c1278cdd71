"""A node and its control plane: all programs in their own network, process tree and mounts.

The law: all processes descend from one; when it is killed, the kernel ends the rest, pods included, and removes their
mounts and network. A folder remains, and empty control groups, which are removed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.cluster import cilium, texts
from tests.cluster.control_groups import HIERARCHIES, control_groups, member_of, unified_group
from tests.deploy.image import PROJECT
from tests.kit.apiserver import write_keys
from tests.kit.programs import find_program, program

PROGRAMS: Final = (
    *("coredns", "etcd", "kube-apiserver", "containerd", "kube-controller-manager", "kube-scheduler"),
    *("kubelet", "kube-proxy", "kubectl"),
)
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
)
BRIDGE: Final = "bridge"
"""The bridge that connects the pods."""
CILIUM: Final = "cilium"
CILIUM_ALONE: Final = "cilium-alone"
"""Cilium in place of kube-proxy too."""
CNIS: Final = (BRIDGE, CILIUM, CILIUM_ALONE)
START_SECONDS: Final = 120
# The output of pods may have any octets.
_TEXT: Final[dict[str, Any]] = {"capture_output": True, "text": True, "errors": "replace"}
_UNSHARE: Final = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")


class NodeFailed(Exception):
    """A program of the node failed; the message has the end of its log."""


def missing(cni: str = BRIDGE) -> list[str]:
    """The needed programs that this machine lacks."""
    more = (*cilium.PROGRAMS, *cilium.TOOLS) if cni != BRIDGE else ()
    absent = [name for name in (*PROGRAMS, *TOOLS, *more) if find_program(name) is None]
    if not Path("/usr/lib/cni/bridge").exists():
        absent.append("containernetworking-plugins")
    if not os.access(HIERARCHIES, os.W_OK):
        absent.append(f"control groups ({HIERARCHIES} cannot be written)")
    if subprocess.run([*_UNSHARE, "true"], check=False, capture_output=True).returncode != 0:
        absent.append("namespaces (unshare)")
    return absent


@dataclass
class Node:
    """A running node."""

    folder: Path
    pid: int
    token: str
    cni: str = BRIDGE
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _logs: ExitStack = field(default_factory=ExitStack, repr=False)

    def inside(self, *words: str) -> list[str]:
        """The command line that runs a command in the node's network and mounts, as its child."""
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", *words]

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command there."""
        done = subprocess.run(self.inside(*words), check=False, **_TEXT)
        if check and done.returncode != 0:
            raise NodeFailed(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done

    def start(self, name: str) -> None:
        """Start one of the node's programs."""
        command = self.commands()[name]
        log = self._logs.enter_context((self.folder / f"{name}.log").open("ab"))
        # /sbin for nft and iptables, which kube-proxy and the CNI's plugins call by name.
        path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT)}
        self.processes[name] = subprocess.Popen(self.inside(*command), stdout=log, stderr=log, env=environment)

    def commands(self) -> dict[str, list[str]]:
        """The command lines of its programs by name, in starting order."""
        find = found_programs(self.cni)
        bare = texts.programs(str(self.folder), find=find)
        if self.cni == BRIDGE:
            return bare
        return cilium.programs(str(self.folder), bare, find=find, alone=self.cni == CILIUM_ALONE)

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
        condition = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        return self.kubectl("get", "nodes", "-o", condition, check=False).stdout == "True"


_READY: Final[Mapping[str, Callable[[Node], bool]]] = {
    "etcd": lambda node: "ready to serve client requests" in (node.folder / "etcd.log").read_text(),
    "kube-apiserver": Node.is_api_ready,
    "containerd": lambda node: (node.folder / "containerd.sock").exists(),
    "kubelet": Node.is_ready,
}
"""The conditions to wait for before the next program starts."""


def found_programs(cni: str = BRIDGE) -> dict[str, str]:
    """The paths of the programs."""
    more = cilium.PROGRAMS if cni != BRIDGE else ()
    return {name: program(name) for name in (*PROGRAMS, *more)} | {"python": sys.executable}


@contextmanager
def running_node(folder: Path, *, cni: str = BRIDGE) -> Iterator[Node]:
    """A node with its control plane, from its readiness; all its files are in `folder`."""
    cgroup = f"/switchback-{os.getpid()}"
    token = secrets.token_hex(16)
    for name in ("cni", "static", "logs"):
        (folder / name).mkdir(parents=True)
    write_keys(folder)
    for name, text in texts.files(str(folder), cgroup=cgroup, token=token).items():
        (folder / name).write_text(text, encoding="utf-8")
    joined = nullcontext() if cni == BRIDGE else member_of(cgroup)
    with control_groups(cgroup), joined, namespaces() as pid, ExitStack() as logs:
        node = Node(folder, pid, token, cni, _logs=logs)
        hide_folders(node)
        make_network(node)
        if cni != BRIDGE:
            bring_cilium(node, cgroup)
        for name in node.commands():
            if name == "cilium-agent":
                node.kubectl("apply", "--server-side", "--recursive", "-f", program("cilium-crds"))
            node.start(name)
            if name in _READY:
                node.wait_for(lambda is_ready=_READY[name]: is_ready(node), name)  # type: ignore[misc]
        yield node


@contextmanager
def namespaces() -> Iterator[int]:
    """A separate network, process tree and mounts. Returns the first process there; its end ends all others."""
    # A shell reaps orphans, as the first process of a tree must.
    first = ["sh", "-c", "while :; do sleep 5; done"]
    holder = subprocess.Popen([*_UNSHARE, *first])
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (children := children_of(holder.pid)) or not is_in_its_own_place(children[0]):
            if time.monotonic() > deadline or holder.poll() is not None:
                raise NodeFailed("the namespaces could not be created")
            time.sleep(0.02)
        yield children[0]
    finally:
        holder.kill()
        holder.wait()


def children_of(pid: int) -> list[int]:
    """The children of a process."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def is_in_its_own_place(pid: int) -> bool:
    """Whether a process is in another process tree than ours, and already runs the intended program."""
    with suppress(OSError):
        own = Path("/proc/self/ns/pid").readlink()
        return Path(f"/proc/{pid}/ns/pid").readlink() != own and b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def hide_folders(node: Node) -> None:
    """Paths that these programs always write: there they see empty folders, and change nothing on this machine."""
    for place in ("/run", "/var/lib/cni", "/var/lib/kubelet", "/var/log/pods", "/var/log/containers"):
        Path(place).mkdir(parents=True, exist_ok=True)
        node.run("mount", "-t", "tmpfs", "tmpfs", place)
    # A separate /etc: changes go to the test's folder, on top of the machine's read-only /etc.
    layers = {name: node.folder / "etc" / name for name in ("upper", "work")}
    for layer in layers.values():
        layer.mkdir(parents=True)
    options = f"lowerdir=/etc,upperdir={layers['upper']},workdir={layers['work']}"
    node.run("mount", "-t", "overlay", "overlay", "-o", options, "/etc")
    for name, text in (("hosts", texts.HOSTS), ("resolv.conf", f"nameserver {texts.NODE_ADDRESS}\n")):
        # On some machines it is a link into a folder that is hidden here.
        node.run("sh", "-c", f"rm -f /etc/{name} && printf %s '{text}' > /etc/{name} && chmod 644 /etc/{name}")


def bring_cilium(node: Node, cgroup: str) -> None:
    """The environment of the Cilium agent in the node: plugins, sources, a file system for its programs."""
    plugins = node.folder / cilium.PLUGINS
    plugins.mkdir()
    for source in (Path("/usr/lib/cni/loopback"), Path(program("cilium-cni"))):
        shutil.copy2(source, plugins)
    shutil.copytree(program("cilium-bpf"), node.folder / cilium.LIBRARY / "bpf")
    (node.folder / "containerd.toml").write_text(texts.format_containerd(str(node.folder), plugins=str(plugins)))
    (node.folder / "cni" / "10-pods.conflist").write_text(cilium.format_network(str(node.folder)))
    node.run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
    # In the machine's group it would redirect the connections of other programs.
    node.run("mkdir", "-p", cilium.CGROUPS)
    node.run("mount", "--bind", str(unified_group(cgroup)), cilium.CGROUPS)
    for place, text in cilium.modules(os.uname().release).items():
        node.run("sh", "-c", f"mkdir -p {Path(place).parent} && printf %s '{text}' > {place}")


def make_network(node: Node) -> None:
    """Loopback, and a veth pair inside, so that the node has an address on a device that is up."""
    ip = program("ip")
    node.run(ip, "link", "set", "lo", "up")
    node.run(ip, "link", "add", "node0", "type", "veth", "peer", "name", "world0")
    node.run(ip, "addr", "add", f"{texts.NODE_ADDRESS}/24", "dev", "node0")
    for device in ("node0", "world0"):
        node.run(ip, "link", "set", device, "up")
    node.run(ip, "route", "add", "default", "via", "198.18.7.1", "dev", "node0")
    node.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
