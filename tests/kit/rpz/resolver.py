"""A real resolver with our policy zone, as a process, and what it answers.

The law: it is asked as any client asks it, over UDP with recursion desired, and nothing of its inside is read.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rrset

from tests.kit.ports import free_port
from tests.kit.processes import is_listening, wait_for

END_SECONDS = 20
_TRIES: Final = 5


@dataclass(frozen=True)
class Site:
    """Where a resolver is to run, who its primary is and where it forwards."""

    folder: Path
    primary: int
    """The primary's port on loopback."""
    secret: str
    upstream: int = 9
    trusted: str | None = None
    """The key of the upstream's zone, as a DNSKEY record's data, where it is signed and to be verified."""
    port: int = field(default_factory=free_port)
    """Of its DNS."""
    helper: int = field(default_factory=free_port)
    """Of a server beside it that transfers the zone and takes the NOTIFY, if there is one."""


@dataclass(frozen=True)
class Resolver:
    """A running resolver."""

    port: int
    log: Path

    def ask(self, name: str, rdtype: str = "A", *, dnssec: bool = False, timeout: float = 10) -> dns.message.Message:
        """Its reply."""
        query = dns.message.make_query(name, rdtype, want_dnssec=dnssec)
        return dns.query.udp(query, "127.0.0.1", port=self.port, timeout=timeout)

    def addresses(self, name: str, rdtype: str = "A") -> list[str]:
        """The addresses in its reply, which is asked for again as stub resolvers do; none if no reply comes."""
        for _ in range(_TRIES):
            with suppress(dns.exception.Timeout):
                reply = self.ask(name, rdtype, timeout=2)
                return sorted(str(record) for answer in reply.answer for record in answer)
        return []

    def rcode(self, name: str, rdtype: str = "A") -> str:
        """The text of its response code."""
        return dns.rcode.to_text(self.ask(name, rdtype).rcode())


@contextmanager
def short_folder() -> Iterator[str]:
    """A folder for control sockets, whose paths have at most 107 characters (unix(7)): those of tests may be longer."""
    with tempfile.TemporaryDirectory(prefix="rpz-") as folder:
        yield folder


@contextmanager
def started(
    command: Sequence[str], *, folder: Path, log: Path, ready: Callable[[], bool]
) -> Iterator[subprocess.Popen[bytes]]:
    """A server from its readiness to its guaranteed end. Raises StartFailed with the end of its log."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_for(ready, process=process, log=log)
        yield process
    finally:
        # Its children end with it; SIGKILL would leave them behind.
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def resolving(command: Sequence[str], site: Site) -> Iterator[Resolver]:
    """A resolver that is ready when it listens on its port."""
    log = site.folder / f"{Path(command[0]).name}.log"
    with started(command, folder=site.folder, log=log, ready=lambda: is_listening(site.port)):
        yield Resolver(site.port, log)
