"""The relays of one run, each with its port and folder, and what is behind them.

The law: a relay is started when it is first asked for, checked with a request before it is measured, and ended with the
rig. What is behind it runs where the load is made, and so takes nothing from the relay before it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from tests.bench.kit.cpus import Cpus
from tests.bench.kit.faults import CannotServe
from tests.bench.kit.loads import log_end
from tests.bench.kit.rig import BaseRig, Server
from tests.bench.relay import bulk
from tests.bench.relay.configs import BODY, OPEN_FILES, Setup, Site, setup_backend
from tests.bench.relay.crowd import open_client
from tests.bench.relay.peers import Peer, find_peer
from tests.bench.relay.workloads import Kind, Workload
from tests.kit.launched import ROOT
from tests.kit.ports import free_port
from tests.kit.programs import find_program

_START_SECONDS: Final = 30.0


class Rig(BaseRig):
    """The relays of one run and the servers behind them."""

    NAME = "relay"

    def __init__(self, *, cpus: Cpus) -> None:
        super().__init__(cpus=cpus)
        self._relays: dict[tuple[str, bool, int], Server] = {}
        self._nginx: Server | None = None
        self._bulk: Server | None = None
        self.direct = 0
        """The port of nginx that wants no header, once it runs."""

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
        site = Site(program, self.make_folder(peer.label), free_port(), behind.port, workload.processes)
        setup = peer.setup(site)
        cpus = self.cpus.server if workload.processes == 1 else self.cpus.server | self.cpus.load
        server = self._start(setup, site, cpus, stack)
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
            site = Site(program, self.make_folder("behind"), free_port(), self.direct)
            setup = setup_backend(site)
            server = self._start(setup, site, self.cpus.load, self._stack)
            wait_right(replace(server, port=self.direct), check_answer)
            self._nginx = server
        return self._nginx

    def bulk(self) -> Server:
        """The bulk server behind the relays, started once."""
        if self._bulk is None:
            site = Site(sys.executable, self.make_folder("bulk"), free_port(), 0)
            command = (site.program, "-m", bulk.__name__, "serve", str(site.port))
            setup = Setup(command, environment={"PYTHONPATH": str(ROOT)})
            self._bulk = self._start(setup, site, self.cpus.load, self._stack)
        return self._bulk

    def _start(self, setup: Setup, site: Site, cpus: frozenset[int], stack: ExitStack) -> Server:
        return self.launch(
            setup.command,
            port=site.port,
            folder=site.folder,
            cpus=cpus,
            stack=stack,
            files=setup.files,
            environment=setup.environment,
            open_files=OPEN_FILES,
        )


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
                raise CannotServe(f"{error}{log_end(server.log)}") from None
        time.sleep(0.1)
