"""A cluster's DNS with our stanza, and dnsproxy behind it, where faults can be had.

The law: to the CoreDNS under test a fault is what it would be in a cluster. As root, dnsproxy is on a node of its own,
and what is sent there can vanish on the way. Without root all is on loopback, and for a black hole a socket takes
dnsproxy's port that nobody reads: what is missing then is only that a connection over TCP begins.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import FoundOwn
from dnsproxy.corefile.plan import plan_install
from dnsproxy.dns.wire import DNS_PORT
from sidecar.values.endpoints import Endpoint
from tests.bench.faults.asking import OUTSIDE_SUFFIX, TABLE_SUFFIX
from tests.kit.coredns import CoreDns, coredns_version, running_coredns
from tests.kit.networks import POD_ADDRESS, Networks, joined_networks
from tests.kit.nsd import running_nsd
from tests.kit.ports import free_port
from tests.kit.serve_process import Serving, serving

RELAY: Final = "192.0.2.81"
"""What dnsproxy answers for names of its table."""
PUBLIC: Final = "198.51.100.7"
"""What the resolver behind everything answers for every name."""
_CLUSTER_IP: Final = "10.96.0.53"
_CLUSTER_IP_6: Final = "2001:db8:96::53"
_LOOPBACK: Final = "127.0.0.1"
_LOOPBACK_6: Final = "::1"


@dataclass
class Scene:
    """The parts, running."""

    coredns: CoreDns
    dnsproxy: Serving
    """The one that runs now."""
    corefile: str
    start: Callable[[], Serving]
    """Have another dnsproxy in the place of one that has ended."""
    networks: Networks | None
    """None on loopback."""

    @contextmanager
    def killed(self) -> Iterator[None]:
        """The process ends as in a crash, and another one is there at the end of the block."""
        self.dnsproxy.kill()
        yield
        self.dnsproxy = self.start()

    @contextmanager
    def hung(self) -> Iterator[None]:
        """The process is stopped for the time of the block: its ports stay bound and nothing is answered."""
        self.dnsproxy.hang()
        try:
            yield
        finally:
            self.dnsproxy.resume()

    @contextmanager
    def black_holed(self) -> Iterator[None]:
        """What is sent to dnsproxy is dropped without a word for the time of the block."""
        if self.networks is None:
            with self.killed(), _silent(self.dnsproxy.port):
                yield
        else:
            with self.networks.black_hole(_CLUSTER_IP):
                yield


@contextmanager
def running_scene(
    folder: Path, *, peer: str = "coredns", options: Sequence[str] = (), dual_stack: bool = False
) -> Iterator[Scene]:
    """CoreDNS with the stanza for its version; `options` are those of the forward that was there before.

    With `dual_stack`, dnsproxy's Service has an address of each family, and the stanza those that the installer takes.
    This thread is in CoreDNS's network for the time of the block.
    """
    with ExitStack() as stack:
        services = [_CLUSTER_IP, _CLUSTER_IP_6] if dual_stack else [_CLUSTER_IP]
        networks = stack.enter_context(joined_networks(services=services)) if os.geteuid() == 0 else None
        if networks is not None:
            stack.enter_context(networks.pod.entered())
        upstream = _start_upstream(folder, networks, stack)
        own_port = DNS_PORT if networks else free_port()
        hosts = services if networks else [_LOOPBACK, _LOOPBACK_6][: len(services)]
        service = FoundOwn(ObjectRef("switchback", "dnsproxy"), tuple(Endpoint(host, own_port) for host in hosts))

        def start() -> Serving:
            listening = service.endpoints if networks else service.endpoints[1:]
            where = [word for endpoint in listening for word in ("--listen", str(endpoint))]
            table = ("--host", f"*.{TABLE_SUFFIX}={RELAY}", "--upstream", str(upstream))
            with networks.node.entered() if networks else nullcontext():
                own = serving(folder, *where, *table, port=None if networks else own_port)
                return stack.enter_context(own)

        port = free_port()
        text = format_corefile(port, upstream, options)
        corefile = plan_install(text, addresses=service.stanza_addresses, coredns_version=coredns_version(peer)).new
        dnsproxy = start()
        coredns = stack.enter_context(running_coredns(folder, corefile, port=port, peer=peer))
        yield Scene(coredns, dnsproxy, corefile, start, networks)


def format_corefile(port: int, upstream: Endpoint, options: Sequence[str]) -> str:
    """The Corefile before the stanza, as kubeadm writes it, without what takes a cluster or a port."""
    forward = [f"forward . {upstream} {{", *(f"   {option}" for option in options), "}"]
    lines = [f"bind {_LOOPBACK}", "errors", *forward, "cache 30", "loop", "loadbalance"]
    return "\n".join([f".:{port} {{", *(f"    {line}" for line in lines), "}", ""])


def _start_upstream(folder: Path, networks: Networks | None, stack: ExitStack) -> Endpoint:
    """On the pod's side of the wire: when dnsproxy's node is gone, this is not."""
    records = "".join(f"*.{suffix}. IN A {PUBLIC}\n" for suffix in (TABLE_SUFFIX, OUTSIDE_SUFFIX))
    addresses = [POD_ADDRESS] if networks else []
    port = stack.enter_context(running_nsd(folder, records, addresses=addresses))
    return Endpoint(POD_ADDRESS, DNS_PORT) if networks else Endpoint(_LOOPBACK, port)


@contextmanager
def _silent(port: int) -> Iterator[None]:
    with ExitStack() as stack:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            held = stack.enter_context(socket.socket(socket.AF_INET, kind))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((_LOOPBACK, port))
            if kind is socket.SOCK_STREAM:
                held.listen()
        yield
