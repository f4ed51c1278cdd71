"""The link that nodes, load balancer and visitors share: a bridge in a network of its own.

The law: nothing on it routes. Each one attached has a device there; its end removes the device.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.cluster.addresses import Addresses
from tests.cluster.nodes.namespaces import namespaces
from tests.kit.programs import program

_BRIDGE = "shared0"


@dataclass(frozen=True)
class Link:
    """A running link."""

    pid: int
    """The process that holds its network."""

    def attach(self, pid: int, device: str, *, port: str) -> None:
        """Give the network of a process a device on the link; `port` is the bridge's end, 15 characters at most."""
        configure(self.pid, f"link add {port} type veth peer name {device} netns {pid}")
        configure(self.pid, f"link set {port} master {_BRIDGE} up")
        configure(pid, "link set lo up", f"link set {device} up")


@contextmanager
def running_link() -> Iterator[Link]:
    """A link to which nobody is attached yet."""
    with namespaces() as pid:
        configure(pid, f"link add {_BRIDGE} type bridge", f"link set {_BRIDGE} up")
        yield Link(pid)


def add_addresses(pid: int, device: str, addresses: Iterable[tuple[Addresses, str]]) -> None:
    """Addresses of a device on the link, each with its family's plan."""
    for at, address in addresses:
        # The check for another owner would delay the first packet by a second.
        more = " nodad" if at.record == "AAAA" else ""
        configure(pid, f"addr add {address}/{at.length} dev {device}{more}")


def add_routes(pid: int, routes: Sequence[tuple[str, str]]) -> None:
    """Routes: what, and the next hop."""
    for what, hop in routes:
        configure(pid, f"route replace {what} via {hop}")


def configure(pid: int, *commands: str) -> None:
    """Run commands of `ip` in the network of a process."""
    for words in commands:
        # An address of IPv6 chooses its family; `default` does not.
        family = ["-6"] if "::" in words else []
        subprocess.run(["nsenter", f"--target={pid}", "--net", program("ip"), *family, *words.split()], check=True)
