"""Network namespaces (network_namespaces(7)) for a test: a pod's network, and a node's behind it.

The law: every entered network is left again, and nothing outlives its block: a namespace lives as long as the process
that holds it, which ends with the block. Sockets and processes created inside stay inside. Linux and root only.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import refuse
from tests.kit.processes import end_process, wait_for
from tests.kit.programs import program

POD_ADDRESS: Final = "10.244.0.2"
NODE_ADDRESS: Final = "10.244.0.1"
"""The two ends of the wire."""
_WIRE_6: Final = ("2001:db8:244::2", "2001:db8:244::1")
"""The same in IPv6: pod and node."""
_CLONE_NEWNET: Final = 0x40000000  # linux/sched.h; the os module has it since Python 3.12
_IDLE_SECONDS: Final = 0.05
_LEAVE_SECONDS: Final = 15
_OURS: Final = Path("/proc/thread-self/ns/net")


@dataclass(frozen=True)
class Network:
    """A separate network, initially with only loopback."""

    holder: subprocess.Popen[bytes]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """For the duration of the block, this thread and its new processes are in that network; no thread stays."""
        with _OURS.open("rb") as before, self._file.open("rb") as inside:
            if os.path.sameopenfile(before.fileno(), inside.fileno()):
                yield
                return
            _enter(inside.fileno())
            with _threads_of_its_own() if _is_main_thread() else nullcontext():
                try:
                    yield
                finally:
                    _enter(before.fileno())
                    if _is_main_thread():
                        _wait_until_left(inside.fileno())

    def ip(self, *arguments: str) -> None:
        """Change the network with iproute2."""
        with self.entered():
            subprocess.run([program("ip"), *arguments], check=True)

    def own(self, address: str) -> None:
        """Give the network an address on its loopback interface, which can be bound at once."""
        # An IPv6 address is tentative without `nodad`: on a busy machine it cannot be bound for a while.
        length, *flags = ("128", "nodad") if ":" in address else ("32",)
        self.ip("addr", "replace", f"{address}/{length}", "dev", "lo", *flags)

    @property
    def _file(self) -> Path:
        return Path(f"/proc/{self.holder.pid}/ns/net")


@dataclass(frozen=True)
class Networks:
    """A pod's network and its node's, which has the cluster's Services, connected by a veth pair."""

    pod: Network
    node: Network

    @contextmanager
    def unreachable(self, address: str) -> Iterator[None]:
        """Traffic from the pod to an address of the node is refused for the duration of the block."""
        self.pod.ip("route", "add", "unreachable", address)
        try:
            yield
        finally:
            self.pod.ip("route", "del", "unreachable", address)

    @contextmanager
    def black_hole(self, address: str) -> Iterator[None]:
        """Traffic from the pod to an address of the node is dropped silently for the duration of the block."""
        self.node.ip("addr", "del", f"{address}/32", "dev", "lo")
        # A node that forwards would report that the address does not exist.
        self.node.ip("route", "add", "blackhole", address)
        try:
            yield
        finally:
            self.node.ip("route", "del", "blackhole", address)
            self.node.own(address)


@contextmanager
def joined_networks(*, services: Sequence[str], own: Sequence[str] = ()) -> Iterator[Networks]:
    """Two connected networks; the node has the addresses of Services, the pod may have additional ones."""
    with one_network() as pod, one_network() as node:
        networks = Networks(pod, node)
        pod.ip("link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", str(node.holder.pid))
        pod.ip("addr", "add", f"{POD_ADDRESS}/24", "dev", "wire")
        node.ip("addr", "add", f"{NODE_ADDRESS}/24", "dev", "wire")
        for network in (pod, node):
            network.ip("link", "set", "wire", "up")
        pod.ip("route", "add", "default", "via", NODE_ADDRESS)
        if any(":" in address for address in services):
            _add_ipv6(networks)
        for network, addresses in ((node, services), (pod, own)):
            for address in addresses:
                network.own(address)
        yield networks


def _add_ipv6(networks: Networks) -> None:
    for network, address in zip((networks.pod, networks.node), _WIRE_6, strict=True):
        # Without `nodad` the address cannot be used for a second.
        network.ip("addr", "add", f"{address}/64", "dev", "wire", "nodad")
    networks.pod.ip("-6", "route", "add", "default", "via", _WIRE_6[1])


@contextmanager
def one_network() -> Iterator[Network]:
    """A network for the duration of the block."""
    with ExitStack() as stack:
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(end_process, holder)
        wait_for(lambda: _has_own_network(holder), process=holder, log=Path(os.devnull))
        network = Network(holder)
        network.ip("link", "set", "lo", "up")
        yield network


@pytest.fixture(scope="session")
def root() -> None:
    """Skip the test without root, which separate networks and root folders require."""
    if os.geteuid() != 0:
        refuse("this needs root, for a network and a root folder for each CoreDNS")


def _has_own_network(holder: subprocess.Popen[bytes]) -> bool:
    return Path(f"/proc/{holder.pid}/ns/net").readlink() != _OURS.readlink()


@contextmanager
def _threads_of_its_own() -> Iterator[None]:
    """Prevent trio from reusing idle threads: each stays in the network of its creation.

    Trio would start programs there. The existing idle threads are set aside, and those of the block end soon after
    their last task.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("trio._core._thread_cache.IDLE_TIMEOUT", _IDLE_SECONDS)
        patched.setattr("trio._core._thread_cache.THREAD_CACHE._idle_workers", {})
        yield


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _wait_until_left(descriptor: int) -> None:
    """Wait until no thread of this process is in a network any more; threads that are not trio's may stay."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    while _is_in_use(os.fstat(descriptor).st_ino) and time.monotonic() < deadline:
        time.sleep(_IDLE_SECONDS)


def _is_in_use(network: int) -> bool:
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the thread may have ended just now
            if (task / "ns/net").stat().st_ino == network:
                return True
    return False


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
