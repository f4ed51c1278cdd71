"""The primaries that are measured, ours among them: how each is started, and how its zone is changed.

The law: all have the same records. Ours reads its names where users have them; a change of it is an Ingress, written
into etcd. The others get the zone as ours transfers it, and change one record as long as a row of ours.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.update

from dnsproxy.dns.names import parse_zone, to_wire
from tests.bench.fleet.addresses import PORT, PRIMARY
from tests.bench.fleet.configs import ZONE_FILE, bind_files, nsd_files
from tests.bench.fleet.one_transfer import ask_serial
from tests.bench.fleet.zone_file import CHANGED, change_text, format_whole
from tests.bench.kit.faults import CannotServe
from tests.bench.kit.loads import log_end
from tests.bench.sync.changing import flipped, key_of
from tests.bench.sync.etcd import Etcd
from tests.kit.apiserver import ApiServer
from tests.kit.launched import ROOT, launched
from tests.kit.ports import free_port
from tests.kit.programs import find_program

OURS: Final = "ours"
BIND: Final = "bind"
NSD: Final = "nsd"
INGRESSES: Final = 200
"""Those that change, in turn."""
TARGET: Final = "192.0.2.10"
_START_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.02
_UPDATE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Site:
    """What a primary is to serve, and to whom."""

    folder: Path
    policy: str
    """The policy zone."""
    zone: str
    """The one that is transferred: this, or the table zone beside it."""
    secondaries: Sequence[str]
    cpus: Collection[int]
    hosts: Path
    api: ApiServer
    lines: str
    """Of the zone, for a master file; empty for ours."""
    port: int = field(default_factory=free_port)

    @property
    def wire_zone(self) -> bytes:
        return to_wire(parse_zone(self.zone))


class Primary(Protocol):
    """A running one."""

    session: int
    """For its clock."""

    def change(self) -> str | None:
        """Change one name; returns when the change is on its way. A name that is answered from then on, if any."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A program that can be a primary."""

    label: str
    program: str
    start: Callable[[Site, ExitStack], Primary]
    changes_fast: bool = True
    """Whether it can take a hundred changes a second."""


class _Ours:
    def __init__(self, site: Site, stack: ExitStack) -> None:
        self.session = _launch(_our_command(site), site, stack, environment=_our_environment(site))
        self._etcd = stack.enter_context(Etcd(site.api.etcd_port))
        self._values = [self._etcd.get(key_of(number)) for number in range(INGRESSES)]
        self._turn = 0

    def change(self) -> str:
        """One host becomes another of the same length."""
        number = self._turn % INGRESSES
        self._turn += 1
        self._values[number], host = flipped(self._values[number], number)
        self._etcd.put(key_of(number), self._values[number])
        return host


class _Bind:
    def __init__(self, site: Site, stack: ExitStack) -> None:
        files = bind_files(site.folder, site.zone, port=site.port, secondaries=site.secondaries)
        _write(site, files, serial=1)
        command = [find_program("named") or "named", "-f", "-n", "1", "-c", "named.conf"]
        self.session = _launch(command, site, stack)
        self._site = site
        self._turn = 1

    def change(self) -> None:
        """By a dynamic update (RFC 2136)."""
        self._turn += 1
        update = dns.update.UpdateMessage(self._site.zone)
        update.replace(CHANGED, 5, "TXT", change_text(self._turn))
        answer = dns.query.udp(update, PRIMARY, port=self._site.port, timeout=_UPDATE_SECONDS)
        if answer.rcode() != dns.rcode.NOERROR:
            raise CannotServe(f"bind does not take an update: {dns.rcode.to_text(answer.rcode())}")


class _Nsd:
    def __init__(self, site: Site, stack: ExitStack) -> None:
        _write(site, nsd_files(site.folder, site.zone, port=site.port, secondaries=site.secondaries), serial=1)
        command = [find_program("nsd") or "nsd", "-d", "-c", "nsd.conf"]
        self.session = _launch(command, site, stack)
        self._site = site
        self._turn = 1

    def change(self) -> None:
        """By another file."""
        self._turn += 1
        _write(self._site, {}, serial=self._turn)
        os.kill(self.session, signal.SIGHUP)


KINDS: Final = (
    Kind(OURS, "python", _Ours),
    Kind(BIND, "named", _Bind),
    Kind(NSD, "nsd", _Nsd, changes_fast=False),
)


def missing_programs() -> list[str]:
    """The programs of others that are not installed."""
    return [kind.program for kind in KINDS if kind.label != OURS and find_program(kind.program) is None]


def _our_command(site: Site) -> list[str]:
    options = [
        *("--listen", f"{PRIMARY}:{site.port}", "--hosts-file", str(site.hosts), "--source", "ingress"),
        *("--target", TARGET, "--upstream", "127.0.0.1:9", "--admin", "off", "--lameduck", "0", "--rpz", site.policy),
        *("--rpz-serial", str(site.folder / "serial")),
        *(part for address in site.secondaries for part in ("--rpz-notify", f"{address}:{PORT}")),
    ]
    return [sys.executable, "-m", "tests.bench.sync.in_pod", str(_write_account(site)), "serve", *options]


def _our_environment(site: Site) -> dict[str, str]:
    return {
        "PYTHONPATH": str(ROOT),
        "KUBERNETES_SERVICE_HOST": PRIMARY,
        "KUBERNETES_SERVICE_PORT": str(site.api.port),
        "KUBECONFIG": "",
    }


def _write_account(site: Site) -> Path:
    """As the kubelet would put it into a pod."""
    account = site.folder / "account"
    account.mkdir()
    (account / "token").write_text(site.api.token)
    (account / "ca.crt").write_bytes(site.api.ca_file.read_bytes())
    return account


def _write(site: Site, files: dict[str, str], *, serial: int) -> None:
    zone = format_whole(site.zone, site.lines, serial=serial, change=serial)
    for name, content in {**files, ZONE_FILE: zone}.items():
        (site.folder / name).write_text(content)


def _launch(command: Sequence[str], site: Site, stack: ExitStack, *, environment: dict[str, str] | None = None) -> int:
    """Start it and wait until it has the zone; its session. Raises CannotServe."""
    log = site.folder / "log"
    process = stack.enter_context(
        launched(command, log=log, cpus=site.cpus, folder=site.folder, environment=environment)
    )
    deadline = time.monotonic() + _START_SECONDS
    while ask_serial(site.port, site.wire_zone) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise CannotServe(f"it does not serve {site.zone}{log_end(log)}")
        time.sleep(_LOOK_SECONDS)
    return process.pid
