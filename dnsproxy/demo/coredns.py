"""Runs the cluster DNS of the story: a real CoreDNS, with kubeadm's Corefile and our stanza.

The law: the installer makes the Corefile from the stock one; only the port and the parts that need a cluster differ.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dnsproxy.corefile.plan import plan_install
from dnsproxy.demo.children import run_child, wait_for_listener
from sidecar.values.endpoints import Endpoint

# kubeadm's (kubernetes cmd/kubeadm/app/phases/addons/dns/manifests.go), without the `kubernetes` plugin, which needs
# an API server, and `loop`, which would see the two servers of the story on one host.
_COREFILE = """.:{port} {{
    bind 127.0.0.1
    errors
    forward . {upstream} {{
       max_concurrent 1000
    }}
    cache 30
    reload
    loadbalance
}}
"""


def installed_corefile(*, port: int, upstream: Endpoint, dnsproxy: Endpoint) -> str:
    """The Corefile after `dnsproxy install`."""
    return plan_install(_COREFILE.format(port=port, upstream=upstream), addresses=[dnsproxy], coredns_version=None).new


@asynccontextmanager
async def run_coredns(program: str, folder: Path, *, upstream: Endpoint, dnsproxy: Endpoint) -> AsyncIterator[Endpoint]:
    """A CoreDNS that answers at the endpoint of the block."""
    endpoint = Endpoint("127.0.0.1", _free_port())
    corefile = folder / "Corefile"
    corefile.write_text(installed_corefile(port=endpoint.port, upstream=upstream, dnsproxy=dnsproxy))
    async with run_child([program, "-conf", str(corefile)]):
        await wait_for_listener(endpoint)
        yield endpoint


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
