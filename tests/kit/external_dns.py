"""A real external-dns, and a real BIND that accepts its updates (RFC 2136), for the duration of a `with` block."""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype

from tests.kit.ports import free_ports
from tests.kit.processes import end_process, wait_for
from tests.kit.programs import program

ZONE: Final = "example.org"
_KEY: Final = "switchback"
_SECONDS: Final = 120
_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # only folders with names of their own are made in it

_ZONE_FILE: Final = f"""\
$TTL 3600
@ SOA ns.{ZONE}. nobody.{ZONE}. 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
foreign A 192.0.2.200
"""


@dataclass(frozen=True)
class Bind:
    """A name server with one zone."""

    port: int
    secret: str

    def ask(self, name: str, rtype: str = "A") -> list[str]:
        """The records of an answer, sorted; the rcode if there is no answer."""
        query = dns.message.make_query(name, rtype)
        reply = dns.query.tcp(query, "127.0.0.1", port=self.port, timeout=20)
        wanted = dns.rdatatype.from_text(rtype)
        found = sorted(str(record) for answer in reply.answer if answer.rdtype == wanted for record in answer)
        return found or [dns.rcode.to_text(reply.rcode())]

    def ttl(self, name: str) -> int:
        """The TTL of its A records."""
        (answer,) = dns.query.tcp(dns.message.make_query(name, "A"), "127.0.0.1", port=self.port, timeout=20).answer
        return answer.ttl


@contextmanager
def running_bind(folder: Path) -> Iterator[Bind]:
    """BIND with the zone `example.org`, which every holder of the key may change.

    Its journal is in memory: external-dns waits 2 s for an update, and that waits for all that is written to the disk.
    """
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else folder) as journals:
        yield from _running_bind(folder, Path(journals) / "journal")


def _running_bind(folder: Path, journal: Path) -> Iterator[Bind]:
    (port,) = free_ports(1)
    secret = base64.b64encode(secrets.token_bytes(32)).decode()
    (folder / "zone").write_text(_ZONE_FILE)
    conf = folder / "named.conf"
    conf.write_text(f"""\
key "{_KEY}" {{ algorithm hmac-sha256; secret "{secret}"; }};
controls {{ }};
options {{
  directory "{folder}";
  pid-file none;
  session-keyfile none;
  listen-on port {port} {{ 127.0.0.1; }};
  listen-on-v6 {{ none; }};
  recursion no;
  dnssec-validation no;
}};
zone "{ZONE}" {{
  type primary;
  file "{folder}/zone";
  journal "{journal}";
  allow-update {{ key "{_KEY}"; }};
  allow-transfer {{ key "{_KEY}"; }};
}};
""")
    log = folder / "named.log"
    bind = Bind(port, secret)
    with log.open("wb") as output:
        process = subprocess.Popen([program("named"), "-g", "-n", "1", "-c", str(conf)], stdout=output, stderr=output)
    try:
        wait_for(lambda: _is_up(bind), process=process, log=log)
        yield bind
    finally:
        end_process(process)


def _is_up(bind: Bind) -> bool:
    try:
        return bind.ask(f"foreign.{ZONE}") == ["192.0.2.200"]
    except (OSError, EOFError, dns.exception.DNSException):
        return False


def sync_once(
    bind: Bind, kubeconfig: Path, namespace: str, *flags: str, sources: Sequence[str], registry: str = "txt"
) -> str:
    """Have external-dns update the zone to match the objects of the namespace. Returns its log."""
    command = [
        *_command(kubeconfig, namespace, sources),
        "--provider=rfc2136",
        "--rfc2136-host=127.0.0.1",
        f"--rfc2136-port={bind.port}",
        f"--rfc2136-zone={ZONE}",
        f"--rfc2136-tsig-keyname={_KEY}",
        f"--rfc2136-tsig-secret={bind.secret}",
        "--rfc2136-tsig-secret-alg=hmac-sha256",
        "--rfc2136-tsig-axfr",
        "--managed-record-types=A",
        "--managed-record-types=AAAA",
        f"--registry={registry}",
        "--txt-owner-id=switchback-test",
        "--txt-prefix=own-%{record_type}-",
        "--txt-wildcard-replacement=any",
        # Without a registry it would treat every record as its own.
        f"--policy={'sync' if registry == 'txt' else 'upsert-only'}",
        *flags,
    ]
    return _run(command, kubeconfig)


def published_names(kubeconfig: Path, namespace: str, *flags: str, sources: Sequence[str]) -> dict[str, set[str]]:
    """Where the records point that external-dns would create for the objects of the namespace, by name in lower case.

    It keeps them in its own memory, in a zone for every name.
    """
    log = _run(
        [
            *_command(kubeconfig, namespace, sources),
            "--provider=inmemory",
            "--registry=noop",
            "--policy=upsert-only",
            "--log-format=json",
            *flags,
        ],
        kubeconfig,
    )
    found: dict[str, set[str]] = {}
    # Lines of its Kubernetes client have a form of their own.
    for line in filter(lambda line: line.startswith("{"), log.splitlines()):
        verb, _, record = json.loads(line)["msg"].partition(": ")
        if verb == "CREATE":
            # NAME TTL IN TYPE SET-IDENTIFIER TARGETS PROVIDER-SPECIFIC
            name, _, _, _, _, targets, *_ = record.split(" ")
            found.setdefault(name.lower(), set()).update(targets.split(";"))
    return found


def _command(kubeconfig: Path, namespace: str, sources: Sequence[str]) -> list[str]:
    return [
        program("external-dns"),
        "--once",
        f"--kubeconfig={kubeconfig}",
        f"--namespace={namespace}",
        *(f"--source={source}" for source in sources),
        "--metrics-address=127.0.0.1:0",
    ]


def _run(command: Sequence[str], kubeconfig: Path) -> str:
    done = subprocess.run(
        command, env=os.environ, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=kubeconfig.parent
    )
    assert done.returncode == 0, done.stderr
    return done.stderr
