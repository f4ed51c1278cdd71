"""Network namespaces (network_namespaces(7)) of a test's own: a pod's network, and a node's behind it.

The law: whatever a block enters, it leaves, and nothing outlives it: a namespace lives as long as the process that
holds it, and that ends with its block. Sockets and processes that are made inside stay inside. Linux and root alone.
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
_CLONE_NEWNET: Final = 0x40000000  # linux/sched.h; the os module has it from Python 3.12 on
_IDLE_SECONDS: Final = 0.05
_LEAVE_SECONDS: Final = 15
_OURS: Final = Path("/proc/thread-self/ns/net")


@dataclass(frozen=True)
class Network:
    """A network of its own, where nothing but loopback is at first."""

    holder: subprocess.Popen[bytes]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """For the time of the block, this thread and what it starts are in that network; no thread is behind it."""
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
        """Change something in there with iproute2."""
        with self.entered():
            subprocess.run([program("ip"), *arguments], check=True)

    @property
    def _file(self) -> Path:
        return Path(f"/proc/{self.holder.pid}/ns/net")


@dataclass(frozen=True)
class Networks:
    """A pod's network and that of its node, which has the cluster's Services, with a wire between them."""

    pod: Network
    node: Network

    @contextmanager
    def unreachable(self, address: str) -> Iterator[None]:
        """What the pod sends to an address of the node is refused at once for the time of the block."""
        self.pod.ip("route", "add", "unreachable", address)
        try:
            yield
        finally:
            self.pod.ip("route", "del", "unreachable", address)

    @contextmanager
    def black_hole(self, address: str) -> Iterator[None]:
        """What the pod sends to an address of the node is dropped without a word for the time of the block."""
        self.node.ip("addr", "del", f"{address}/32", "dev", "lo")
        # A node that forwards would say that there is no such address.
        self.node.ip("route", "add", "blackhole", address)
        try:
            yield
        finally:
            self.node.ip("route", "del", "blackhole", address)
            self.node.ip("addr", "add", f"{address}/32", "dev", "lo")


@contextmanager
def joined_networks(*, services: Sequence[str], own: Sequence[str] = ()) -> Iterator[Networks]:
    """Two networks with a wire; the node has the addresses of Services, the pod may have more of its own."""
    with one_network() as pod, one_network() as node:
        networks = Networks(pod, node)
        pod.ip("link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", str(node.holder.pid))
        pod.ip("addr", "add", f"{POD_ADDRESS}/24", "dev", "wire")
        node.ip("addr", "add", f"{NODE_ADDRESS}/24", "dev", "wire")
        for network in (pod, node):
            network.ip("link", "set", "wire", "up")
        pod.ip("route", "add", "default", "via", NODE_ADDRESS)
        for network, addresses in ((node, services), (pod, own)):
            for address in addresses:
                network.ip("addr", "add", f"{address}/32", "dev", "lo")
        yield networks


@contextmanager
def one_network() -> Iterator[Network]:
    """A network for the time of the block."""
    with ExitStack() as stack:
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(end_process, holder)
        wait_for(lambda: _has_own_network(holder), process=holder, log=Path(os.devnull))
        network = Network(holder)
        network.ip("link", "set", "lo", "up")
        yield network


@pytest.fixture(scope="session")
def root() -> None:
    """Skip who is not root, for networks and folders of one's own take it."""
    if os.geteuid() != 0:
        refuse("this takes root: a network and a root folder for each CoreDNS")


def _has_own_network(holder: subprocess.Popen[bytes]) -> bool:
    return Path(f"/proc/{holder.pid}/ns/net").readlink() != _OURS.readlink()


@contextmanager
def _threads_of_its_own() -> Iterator[None]:
    """Trio keeps a thread for the next task, in the network that it was made in: there it would start programs.

    So those from before are set aside, and those of the block end soon after their last task.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("trio._core._thread_cache.IDLE_TIMEOUT", _IDLE_SECONDS)
        patched.setattr("trio._core._thread_cache.THREAD_CACHE._idle_workers", {})
        yield


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _wait_until_left(descriptor: int) -> None:
    """Until no thread of this process is in a network any more; one that is none of trio's may stay."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    while _is_in_use(os.fstat(descriptor).st_ino) and time.monotonic() < deadline:
        time.sleep(_IDLE_SECONDS)


def _is_in_use(network: int) -> bool:
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it may have ended just now
            if (task / "ns/net").stat().st_ino == network:
                return True
    return False


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
