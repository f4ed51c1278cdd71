"""What a node needs before its first program: folders, files, network, and the environment of Cilium.

The law: nothing outside of the node's own folder, mounts and network changes.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster.nodes import cilium
from tests.cluster.nodes.configs import UPLINK, Place, files, format_containerd, format_hosts, format_resolv_conf
from tests.cluster.nodes.control_groups import unified_group
from tests.cluster.nodes.link import Link, add_addresses, add_routes
from tests.cluster.nodes.node import Node
from tests.cluster.plan import BRIDGE
from tests.kit.programs import program

_ALWAYS_WRITTEN: Final = ("/run", "/var/lib/cni", "/var/lib/kubelet", "/var/log/pods", "/var/log/containers")


def write_files(place: Place) -> None:
    """The configuration files of its programs."""
    for name in ("cni", "static", "logs"):
        (Path(place.folder) / name).mkdir(parents=True, exist_ok=True)
    for name, text in files(place).items():
        file = Path(place.folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def hide_folders(node: Node) -> None:
    """Paths that these programs always write: there they see empty folders, and change nothing on this machine."""
    for place in _ALWAYS_WRITTEN:
        Path(place).mkdir(parents=True, exist_ok=True)
        node.run("mount", "-t", "tmpfs", "tmpfs", place)
    # A separate /etc: changes go to the test's folder, on top of the machine's read-only /etc.
    layers = {name: node.folder / "etc" / name for name in ("upper", "work")}
    for layer in layers.values():
        layer.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir=/etc,upperdir={layers['upper']},workdir={layers['work']}"
    node.run("mount", "-t", "overlay", "overlay", "-o", options, "/etc")
    for name, text in (("hosts", format_hosts(node.place)), ("resolv.conf", format_resolv_conf(node.place))):
        # On some machines it is a link into a folder that is hidden here.
        node.run("sh", "-c", f"rm -f /etc/{name} && printf %s '{text}' > /etc/{name} && chmod 644 /etc/{name}")


def make_network(node: Node, link: Link, *, others: Sequence[int]) -> None:
    """Its device on the link, the routes to the pods of other nodes, and the masquerading of what pods send out."""
    place = node.place
    for setting in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        node.run("sh", "-c", f"echo 1 > /proc/sys/net/{setting}")
    link.attach(node.pid, UPLINK, port=place.name)
    add_addresses(node.pid, UPLINK, [(at, at.node(place.number)) for at in place.at])
    add_routes(node.pid, [("default" if at.record == "A" else "::/0", at.router) for at in place.at])
    add_routes(node.pid, [(at.pods_of(other), at.node(other)) for at in place.at for other in others])
    if node.cni == BRIDGE:
        node.run(program("nft"), "-f", str(node.folder / "masquerade.nft"))


def bring_cilium(node: Node) -> None:
    """The environment of the Cilium agent in the node: plugins, sources, a file system for its programs."""
    plugins = node.folder / cilium.PLUGINS
    plugins.mkdir()
    for source in (Path("/usr/lib/cni/loopback"), Path(program("cilium-cni"))):
        shutil.copy2(source, plugins)
    shutil.copytree(program("cilium-bpf"), node.folder / cilium.LIBRARY / "bpf")
    compilers = node.folder / cilium.COMPILERS
    compilers.mkdir()
    (compilers / "clang").symlink_to(program(cilium.COMPILER))
    (node.folder / "containerd.toml").write_text(format_containerd(str(node.folder), plugins=str(plugins)))
    (node.folder / "cni" / "10-pods.conflist").write_text(cilium.format_network(str(node.folder)))
    node.run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
    # In the machine's group it would redirect the connections of other programs.
    node.run("mkdir", "-p", cilium.CGROUPS)
    node.run("mount", "--bind", str(unified_group(node.place.cgroup)), cilium.CGROUPS)
