"""The servers behind the pods, as in production.

The law: a real CoreDNS whose stanza `dnsproxy install` wrote, the real `dnsproxy serve` as its target, and a real NSD
as public DNS, which has other addresses for the same names. CoreDNS denies every name in the cluster domain by itself,
as its plugin `kubernetes` does, and asks dnsproxy for all others.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.clients.pods import IPV4, IPV6, inside, node_network
from tests.kit.coredns import started_coredns
from tests.kit.launched import ROOT
from tests.kit.networks import Network
from tests.kit.nsd import end_process_in_time
from tests.kit.processes import is_listening, wait_for
from tests.kit.programs import program
from tests.kit.serve_process import Serving, serving

PEERS: Final = ("coredns", "nsd", "ip")
CLUSTER_DNS: Final[Mapping[str, str]] = {IPV4: "10.96.0.10", IPV6: "2001:db8:96::10"}
DNSPROXY: Final[Mapping[str, str]] = {IPV4: "10.96.0.53"}
_PUBLIC_DNS: Final = "198.51.100.53"

TARGET: Final[Mapping[str, str]] = {IPV4: "192.0.2.80", IPV6: "2001:db8::80"}
"""The addresses of the relay."""
PUBLIC: Final[Mapping[str, str]] = {IPV4: "203.0.113.80", IPV6: "2001:db8:ffff::80"}
"""What public DNS has for every name below example.org."""
FEW: Final = [f"192.0.2.{number}" for number in range(101, 141)]
"""An answer larger than 512 octets."""
MANY: Final = [f"192.0.2.{number}" for number in range(101, 201)]
"""An answer larger than 1,232 octets."""
FORWARDED: Final = [f"198.51.100.{number}" for number in range(101, 201)]
"""The same for a name that is not in the table."""
REMOVED_NAMES: Final = ("app.gone.example.org.", "app.lost.example.net.")
"""Names that are removed from the table: public DNS has the first, and not the second."""

_NAMES: Final[Mapping[str, list[str]]] = {
    "four.example.org": [TARGET[IPV4]],
    "six.example.org": [TARGET[IPV6]],
    "dual.example.org": list(TARGET.values()),
    "short.example.org": list(TARGET.values()),
    "absolute.example.org": list(TARGET.values()),
    "few.example.org": FEW,
    "many.example.org": MANY,
}
_COREFILE: Final = """.:53 {{
    bind {addresses}
    errors
    template ANY ANY cluster.local {{
        rcode NXDOMAIN
        authority "cluster.local. 5 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5"
    }}
    forward . {upstream} {{
        max_concurrent 1000
    }}
    cache 30
    loadbalance
}}
"""
_START: Final = """$ORIGIN {zone}
$TTL 30
@ SOA ns.example.org. hostmaster.example.org. 1 3600 600 86400 5
@ NS ns.example.org.
"""


@dataclass(frozen=True)
class Node:
    """The node, and the names that dnsproxy answers."""

    network: Network
    server: Serving
    hosts: Path

    def remove(self, label: str) -> None:
        """Take the names with this first label out of the table; dnsproxy has read that when its log has the change."""
        lines = self.hosts.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = "".join(line for line in lines if not line.split()[1].startswith(f"{label}."))
        replaced = self.hosts.with_suffix(".new")
        replaced.write_text(kept, encoding="utf-8")
        replaced.replace(self.hosts)
        self.server.process.send_signal(signal.SIGHUP)


@contextmanager
def running_node(folder: Path) -> Iterator[Node]:
    """The servers from their readiness to their end."""
    services = [*CLUSTER_DNS.values(), *DNSPROXY.values(), _PUBLIC_DNS]
    hosts = folder / "hosts"
    hosts.write_text("".join(_host_lines()), encoding="utf-8")
    with node_network(services) as network, ExitStack() as stack:
        with network.entered():
            stack.enter_context(_public_dns(folder / "nsd"))
            listen = ("--listen", f"{DNSPROXY[IPV4]}:53", "--upstream", _PUBLIC_DNS, "--hosts-file", str(hosts))
            server = stack.enter_context(serving(folder, *listen))
        # Not entered: the thread that reads its output would stay in the network.
        coredns = (program("coredns"), "-conf", str(_installed(folder)), "-dns.port", "53")
        stack.enter_context(started_coredns([*inside(network), *coredns], folder=folder))
        yield Node(network, server, hosts)


def _host_lines() -> Iterator[str]:
    for name, addresses in _NAMES.items():
        yield from (f"{address} {name}\n" for address in addresses)
    for name in REMOVED_NAMES:
        yield from (f"{address} {name.rstrip('.')}\n" for address in TARGET.values())


def _installed(folder: Path) -> Path:
    """The Corefile with our stanza, by our installer."""
    plain = folder / "Corefile"
    addresses = " ".join(CLUSTER_DNS.values())
    plain.write_text(_COREFILE.format(addresses=addresses, upstream=_PUBLIC_DNS), encoding="utf-8")
    command = [sys.executable, "-m", "dnsproxy", "install", "--file", str(plain), "--address", DNSPROXY[IPV4]]
    installed = folder / "Corefile.installed"
    installed.write_bytes(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    return installed


@contextmanager
def _public_dns(folder: Path) -> Iterator[None]:
    folder.mkdir()
    wildcard = f"A {PUBLIC[IPV4]}\n* AAAA {PUBLIC[IPV6]}\n"
    large = "".join(f"large A {address}\n" for address in FORWARDED)
    zones = {
        ".": "",
        "example.org.": f"* {wildcard}gone NS ns.example.org.\nns A {_PUBLIC_DNS}\n{large}",
        "gone.example.org.": f"* {wildcard}",
    }
    rows = ["server:", "  server-count: 1", f"  ip-address: {_PUBLIC_DNS}", f'  zonesdir: "{folder}"']
    rows += [f'  {key}: "{folder}/{key}"' for key in ("xfrdfile", "zonelistfile", "pidfile")]
    rows += [f'  xfrdir: "{folder}"', '  username: ""', '  chroot: ""', '  database: ""', "  rrl-ratelimit: 0"]
    rows += ["remote-control:", "  control-enable: no"]
    for zone, records in zones.items():
        (folder / f"{zone}zone").write_text(_START.format(zone=zone) + records, encoding="utf-8")
        rows += ["zone:", f'  name: "{zone}"', f'  zonefile: "{zone}zone"']
    (folder / "nsd.conf").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    log = folder / "nsd.log"
    with log.open("wb") as output:
        process = subprocess.Popen([program("nsd"), "-d", "-c", str(folder / "nsd.conf")], stdout=output, stderr=output)
    try:
        wait_for(lambda: is_listening(53, address=_PUBLIC_DNS), process=process, log=log)
        yield
    finally:
        process.terminate()
        end_process_in_time(process)
