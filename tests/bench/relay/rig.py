"""The relays of one run, each with its port and folder, and what is behind them.

The law: a relay is started when it is first asked for, checked with a request before it is measured, and ended with the
rig. What is behind it runs where the load is made, and so takes nothing from the relay before it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tests.bench.kit.cpus import Cpus
from tests.bench.relay import bulk
from tests.bench.relay.configs import BODY, OPEN_FILES, Site, setup_backend
from tests.bench.relay.crowd import open_client
from tests.bench.relay.peers import Peer, find_peer
from tests.bench.relay.workloads import Kind, Workload
from tests.kit.launched import ROOT, launched
from tests.kit.ports import free_port
from tests.kit.programs import find_program

_START_SECONDS: Final = 30.0
_LOG_END: Final = 300


class CannotServe(Exception):
    """A relay or what is behind it does not start, or does not work; the message says how."""


@dataclass(frozen=True, slots=True)
class Server:
    """A process that listens."""

    port: int
    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def session(self) -> int:
        """What its clock is read by."""
        return self.process.pid


class Rig:
    """A context manager that owns a temporary folder and all processes."""

    def __init__(self, *, cpus: Cpus) -> None:
        self.cpus = cpus
        self._stack = ExitStack()
        self._relays: dict[tuple[str, bool, int], Server] = {}
        self._nginx: Server | None = None
        self._bulk: Server | None = None
        self.direct = 0
        """The port of nginx that wants no header, once it runs."""

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="bench-relay-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def relay(self, peer: Peer, workload: Workload) -> Server:
        """The relay to what a workload needs behind it, started once. Raises CannotServe."""
        key = peer.label, workload.kind is Kind.BULK, workload.processes
        if key not in self._relays:
            self._relays[key] = self.start(peer, workload, stack=self._stack)
        return self._relays[key]

    def start(self, peer: Peer, workload: Workload, *, stack: ExitStack) -> Server:
        """A fresh relay, checked, which ends with `stack`. Raises CannotServe."""
        behind = self.bulk() if workload.kind is Kind.BULK else self.nginx()
        if peer.setup is None:
            return Server(self.direct, behind.process, behind.folder)
        program = find_peer(peer)
        if program is None:
            raise CannotServe(f"{peer.program} is not installed")
        site = Site(program, self._make_folder(peer.label), free_port(), behind.port, workload.processes)
        setup = peer.setup(site)
        cpus = self.cpus.server if workload.processes == 1 else self.cpus.server | self.cpus.load
        for name, content in setup.files.items():
            (site.folder / name).write_text(content)
        server = self._launch(setup.command, site, dict(setup.environment), cpus, stack)
        check = check_bulk if workload.kind is Kind.BULK else check_request
        wait_right(server, check)
        return server

    def nginx(self) -> Server:
        """The nginx behind the relays, started once. Raises CannotServe."""
        if self._nginx is None:
            program = find_program("nginx")
            if program is None:
                raise CannotServe("nginx, which is to be behind it, is not installed")
            self.direct = free_port()
            site = Site(program, self._make_folder("behind"), free_port(), self.direct)
            setup = setup_backend(site)
            for name, content in setup.files.items():
                (site.folder / name).write_text(content)
            server = self._launch(setup.command, site, {}, self.cpus.load, self._stack)
            wait_right(Server(self.direct, server.process, server.folder), check_answer)
            self._nginx = server
        return self._nginx

    def bulk(self) -> Server:
        """The bulk server behind the relays, started once."""
        if self._bulk is None:
            site = Site(sys.executable, self._make_folder("bulk"), free_port(), 0)
            command = (site.program, "-m", bulk.__name__, "serve", str(site.port))
            self._bulk = self._launch(command, site, {"PYTHONPATH": str(ROOT)}, self.cpus.load, self._stack)
        return self._bulk

    def _make_folder(self, label: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{''.join(filter(str.isalnum, label))}-", dir=self.folder))

    def _launch(
        self, command: tuple[str, ...], site: Site, environment: dict[str, str], cpus: frozenset[int], stack: ExitStack
    ) -> Server:
        process = stack.enter_context(
            launched(
                command,
                log=site.folder / "log",
                cpus=cpus,
                folder=site.folder,
                environment=environment,
                open_files=OPEN_FILES,
            )
        )
        return Server(site.port, process, site.folder)


def check_answer(port: int) -> None:
    """Ask once over HTTP. Raises OSError."""
    open_client(port).close()


def check_request(port: int) -> None:
    """Ask once over HTTP; the answer must say that the header named this very client. Raises OSError."""
    with open_client(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
        answer = client.recv(65_536)
    if not answer.endswith(f"\r\n\r\n127.0.0.1 {BODY}".encode()):
        raise OSError(f"the answer ends {answer[-100:]!r}")


def check_bulk(port: int) -> None:
    """A small transfer each way. Raises OSError, Fault."""
    for what in ("download", "upload"):
        bulk.ask(port, what, 1_000_000, 0)


def wait_right(server: Server, check: Callable[[int], None]) -> None:
    """Check until nothing is wrong any more. Raises CannotServe with what last was wrong."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            return check(server.port)
        except (OSError, bulk.Fault) as error:
            ended = server.process.poll() is not None
            if ended or time.monotonic() > deadline:
                end = " ".join((server.folder / "log").read_text(errors="replace")[-_LOG_END:].split())
                raise CannotServe(f"{error}; its log ends: {end}" if end else str(error)) from None
        time.sleep(0.1)
