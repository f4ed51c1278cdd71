"""Public DNS for the attacks: a real NSD that answers for the root and a few registered domains.

The law: `forwarded` means the answer of this server. A name that it does not know gets NXDOMAIN.
"""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kit.messages import AAAA, A, query, read_dnspython
from tests.kit.nsd import end_process_in_time
from tests.kit.ports import free_port
from tests.kit.processes import is_listening, wait_for
from tests.kit.programs import program

BALANCER: Final = "192.0.2.1"
"""The load balancer of the class `public`."""
OTHER_BALANCER: Final = "192.0.2.2"
"""The load balancer of the class `other`, and of the Gateways."""
WORLD: Final = "198.51.100.20"
"""A server that is not in the cluster."""

_REGISTERED: Final = f"@ A {WORLD}\nwww A {WORLD}\n"
"""A registered domain without a wildcard, none of whose names leads to the cluster."""
ZONES: Final[Mapping[str, str]] = {
    ".": "ipv4only.arpa. A 192.0.0.170\n",
    "example.org": f"*.shop A {BALANCER}\n*.wild A {BALANCER}\n*.apps A {BALANCER}\n*.gw A {OTHER_BALANCER}\n"
    f"*.owner A {BALANCER}\n*.mark A {BALANCER}\nmail A {WORLD}\nwww A {BALANCER}\n",
    "example.com": f"@ A {WORLD}\n*.world A {WORLD}\n*.open A {WORLD}\n*.six AAAA 2001:db8::20\n*.mixed MX 10 mail\n"
    "*.split A 10.1.2.3\n*.cname CNAME cdn.example.net.\n*.dangling CNAME gone.example.net.\n",
    "example.net": f"@ A {WORLD}\ncdn A {WORLD}\n*.corp A {WORLD}\n",
    **dict.fromkeys(("tenants.org", "shared.org"), f"@ A {WORLD}\nshop A {BALANCER}\nmail A {WORLD}\n"),
    **{f"registered{number}.com": _REGISTERED for number in range(1, 10)},
}
BROKEN: Final = "broken.com"
"""A zone that this server was told of and has no file for: SERVFAIL."""


@dataclass(frozen=True)
class Answer:
    """What a server says of a name: the status, and all its addresses."""

    rcode: int
    addresses: frozenset[str]

    def __str__(self) -> str:
        return f"rcode {self.rcode} {sorted(self.addresses)}"


def answer_of(port: int, name: str) -> Answer:
    """The answers of a server on a loopback port to queries for A and AAAA."""
    rcodes: set[int] = set()
    addresses: set[str] = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(30)
        client.connect(("127.0.0.1", port))
        for number, rtype in enumerate((A, AAAA), 1):
            client.send(query(name, rtype, ident=number))
            reply = client.recv(4096)
            assert struct.unpack_from("!H", reply) == (number,)
            read = read_dnspython(reply)
            rcodes.add(read.rcode)
            addresses |= {str(content) for _, kind, _, content in read.answers if kind in (A, AAAA)}
    return Answer(max(rcodes), frozenset(addresses))


@contextmanager
def running_public_dns(folder: Path) -> Iterator[int]:
    """Its port on loopback."""
    folder.mkdir()
    port = free_port()
    (folder / "nsd.conf").write_text(_config(folder, port), encoding="utf-8")
    for name, records in ZONES.items():
        start = f"$ORIGIN {name}{'' if name == '.' else '.'}\n$TTL 5\n"
        start += "@ SOA ns.example.org. hostmaster.example.org. 1 3600 600 86400 5\n@ NS ns.example.org.\n"
        (folder / f"{name.strip('.') or 'root'}.zone").write_text(start + records, encoding="utf-8")
    log = folder / "nsd.log"
    with log.open("wb") as output:
        command = [program("nsd"), "-d", "-c", "nsd.conf"]
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        wait_for(lambda: is_listening(port), process=process, log=log)
        yield port
    finally:
        process.terminate()
        end_process_in_time(process)


def _config(folder: Path, port: int) -> str:
    rows = ["server:", "  server-count: 1", f"  ip-address: 127.0.0.1@{port}", f'  zonesdir: "{folder}"']
    rows += [f'  {key}: "{folder}/{key}"' for key in ("xfrdfile", "zonelistfile", "pidfile")]
    rows += [f'  xfrdir: "{folder}"', '  username: ""', '  chroot: ""', '  database: ""', "  rrl-ratelimit: 0"]
    rows += ["remote-control:", "  control-enable: no"]
    for name in (*ZONES, BROKEN):
        rows += ["zone:", f'  name: "{name}"', f'  zonefile: "{name.strip(".") or "root"}.zone"']
    return "".join(f"{row}\n" for row in rows)
