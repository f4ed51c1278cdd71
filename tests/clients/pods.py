"""Pods with their own network and their own /etc, on a node that has the cluster's Services.

The law: a pod has addresses of its families only, and a default route for each; its DNS is that of its first family.
Nothing in a pod is visible outside. Linux and root only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kit.mounts import MountNamespace, mount_namespace
from tests.kit.networks import Network, one_network

SEARCH: Final = ("default.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example.net")
"""The kubelet's three, and one of the node."""
IPV4: Final = "IPv4"
IPV6: Final = "IPv6"
_LOOPBACK: Final = "127.0.0.1 localhost\n::1 localhost\n"
_OVER_ETC: Final = """
mount -t tmpfs tmpfs "$1" && mkdir "$1/upper" "$1/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" /etc
cp --recursive --remove-destination "$2/." /etc/
"""


IPV4_ONLY: Final = (IPV4,)
IPV6_ONLY: Final = (IPV6,)
DUAL: Final = (IPV4, IPV6)
"""The address families of a pod."""


@dataclass(frozen=True)
class Pod:
    """A pod's network, and the address of its DNS."""

    network: Network
    nameserver: str
    folder: Path

    def command(self, mounts: MountNamespace, *arguments: str) -> list[str]:
        """The command prefix that runs a program in the pod, with these files."""
        return [*inside(self.network), *mounts.command(*arguments)]

    @contextmanager
    def files(self, name: str, **changes: str) -> Iterator[MountNamespace]:
        """/etc as the kubelet makes it, with changes: `resolv_conf`, `nsswitch_conf` ..."""
        options = f"search {' '.join(SEARCH)}\noptions ndots:5\n"
        contents = {
            "resolv_conf": f"nameserver {self.nameserver}\n{options}",
            "nsswitch_conf": "passwd: files\ngroup: files\nhosts: files dns\n",
            "hosts": _LOOPBACK,
            **changes,
        }
        with etc_of(self.folder / name, contents) as mounts:
            yield mounts


def inside(network: Network) -> list[str]:
    """The beginning of a command that runs the rest of it in a network."""
    return ["nsenter", f"--net=/proc/{network.holder.pid}/ns/net"]


@contextmanager
def etc_of(folder: Path, contents: Mapping[str, str]) -> Iterator[MountNamespace]:
    """A mount namespace whose /etc has these files, also if this computer's are symbolic links."""
    files, over = folder / "etc", folder / "over"
    for one in (files, over):
        one.mkdir(parents=True)
    for name, content in contents.items():
        (files / name.replace("_", ".")).write_text(content, encoding="utf-8")
    with mount_namespace() as mounts:
        done = mounts.run("sh", "-e", "-c", _OVER_ETC, "sh", str(over), str(files))
        assert done.returncode == 0, done.stderr
        yield mounts


@contextmanager
def node_network(services: Sequence[str]) -> Iterator[Network]:
    """The node's network, with the addresses of Services."""
    with one_network() as node:
        for address in services:
            node.own(address)
        yield node


@contextmanager
def pod_on(
    node: Network, families: Sequence[str], nameservers: Mapping[str, str], folder: Path, *, number: int
) -> Iterator[Pod]:
    """A pod on the node; `nameservers` has an address for each family, `number` is that of its network."""
    wires = [_wire(family, number) for family in families]
    with one_network() as network:
        outer = f"pod{number}"
        node.ip("link", "add", outer, "type", "veth", "peer", "name", "wire", "netns", str(network.holder.pid))
        for wire in wires:
            network.ip("addr", "add", f"{wire.inside}/{wire.length}", "dev", "wire", *wire.flags)
            node.ip("addr", "add", f"{wire.outside}/{wire.length}", "dev", outer, *wire.flags)
        network.ip("link", "set", "wire", "up")
        node.ip("link", "set", outer, "up")
        for wire in wires:
            network.ip("route", "add", "default", "via", wire.outside)
        yield Pod(network, nameservers[families[0]], folder)


@dataclass(frozen=True)
class _Wire:
    """The addresses of one family on both ends of a veth pair."""

    inside: str
    outside: str
    length: int
    flags: tuple[str, ...] = ()


def _wire(family: str, number: int) -> _Wire:
    if family == IPV4:
        return _Wire(f"10.244.{number}.2", f"10.244.{number}.1", 24)
    # Without `nodad` an IPv6 address cannot be used for a second.
    return _Wire(f"2001:db8:244:{number}::2", f"2001:db8:244:{number}::1", 64, ("nodad",))
