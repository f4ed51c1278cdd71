"""The servers of one run, all up at the same time, each with its port, folder and zone.

The law: a server is started when it is first asked for, checked with questions of every workload that it is measured
with, and ended with the rig.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench.dns.checking import find_fault_at, wait_right
from tests.bench.dns.configs import Site
from tests.bench.dns.peers import UPSTREAM, Peer, find_peer
from tests.bench.dns.workloads import (
    BEHIND_FORWARD,
    Question,
    Workload,
    Zone,
    format_queries,
    make_questions,
    make_zone,
)
from tests.bench.kit.cpus import Cpus
from tests.bench.kit.faults import CannotServe
from tests.bench.kit.loads import log_end, module_command
from tests.bench.kit.rig import BaseRig, Server
from tests.kit.launched import launched
from tests.kit.polling import poll_until
from tests.kit.ports import free_port

_CHECKED: Final = 5
_LISTENING: Final = 20.0
"""Seconds until a listener sees a query."""


class Rig(BaseRig):
    """The servers and zones of one run."""

    NAME = "dns"

    def __init__(self, *, cpus: Cpus) -> None:
        super().__init__(cpus=cpus)
        self._servers: dict[tuple[str, str], Server] = {}
        self._questions: dict[str, list[Question]] = {}
        self._zones: dict[str, Zone] = {}

    def zone(self, name: str) -> Zone:
        """A zone, made once."""
        if name not in self._zones:
            self._zones[name] = make_zone(name)
        return self._zones[name]

    def queries(self, workload: Workload) -> Path:
        """The file of a workload's queries, written once."""
        path = self.folder / f"{workload.name}.queries"
        if not path.exists():
            path.write_bytes(format_queries(self.questions(workload), edns=workload.edns))
        return path

    def questions(self, workload: Workload) -> Sequence[Question]:
        """The questions of a workload, made once."""
        if workload.name not in self._questions:
            self._questions[workload.name] = make_questions(workload, self.zone(workload.zone))
        return self._questions[workload.name]

    def server(self, peer: Peer, workload: Workload) -> Server:
        """The server for a workload, started once for its zone, checked each time. Raises CannotServe."""
        key = peer.label, workload.zone
        if key not in self._servers:
            self._servers[key] = self.start(peer, workload, stack=self._stack)
        else:
            self._check(peer, self._servers[key], workload)
        return self._servers[key]

    def start(
        self,
        peer: Peer,
        workload: Workload,
        *,
        stack: ExitStack,
        upstream: int | None = None,
        open_files: int | None = None,
    ) -> Server:
        """A fresh server, checked, which ends with `stack`. Raises CannotServe."""
        site = self._make_site(peer, self.zone(workload.zone), upstream)
        setup = peer.setup(site)
        server = self.launch(
            setup.command,
            port=site.port,
            folder=site.folder,
            cpus=self._cpus_for(peer),
            stack=stack,
            files=setup.files,
            environment=setup.environment,
            open_files=open_files,
        )
        self._check(peer, server, workload)
        if site.admin is not None:
            self._listen(site.admin, stack, lambda: self._check(peer, server, workload))
        return server

    def _listen(self, admin: int, stack: ExitStack, ask: Callable[[], None]) -> None:
        """Have a listener read the queries, where the load is made. Raises CannotServe if it sees none."""
        log = self.make_folder("listener") / "log"
        command = module_command("dnsproxy", "tap", "--admin", f"127.0.0.1:{admin}", "--output", "json")
        stack.enter_context(launched(command, log=log, cpus=self.cpus.load))

        def seen() -> bool:
            ask()
            return b'"qname"' in log.read_bytes()

        try:
            poll_until(seen, "its listener sees no query", seconds=_LISTENING)
        except AssertionError as error:
            raise CannotServe(f"{error}: {log.read_text()[-300:]}") from None

    def _make_site(self, peer: Peer, zone: Zone, upstream: int | None) -> Site:
        program = find_peer(peer)
        if program is None:
            raise CannotServe(f"{peer.program} is not installed")
        admin = free_port() if peer.watched else None
        if zone.forwarded:
            upstream = self.server(UPSTREAM, BEHIND_FORWARD).port
        return Site(program, self.make_folder(peer.label + zone.name), free_port(), zone, upstream, peer.workers, admin)

    def _cpus_for(self, peer: Peer) -> frozenset[int]:
        if peer.workers > 1:
            return self.cpus.server | self.cpus.load
        # An upstream runs where the load is made, and so takes nothing from the server before it.
        return self.cpus.load if peer is UPSTREAM else self.cpus.server

    def _check(self, peer: Peer, server: Server, workload: Workload) -> None:
        for asked in self.questions(workload)[:_CHECKED]:
            find = partial(find_fault_at, server.port, asked, edns=workload.edns, address=peer.address)
            try:
                wait_right(server.process, find)
            except CannotServe as error:
                raise CannotServe(f"{error}{log_end(server.log)}") from None
