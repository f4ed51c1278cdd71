"""A real CoreDNS on loopback, for the length of a `with` block.

Only the process started here is ended, by its handle.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.exception
import dns.message
import dns.query

from tests.kit.ports import free_port
from tests.kit.programs import program

START_SECONDS = 60.0
"""A fraction of a second on an idle machine."""
_BANNER = "CoreDNS-"
"""What it prints once every server listens."""


@dataclass(frozen=True)
class CoreDns:
    """A running CoreDNS."""

    port: int
    process: subprocess.Popen[str]
    address: str = "127.0.0.1"

    def ask(self, name: str, *, timeout: float = 10.0) -> dns.message.Message:
        """The reply to a question for A."""
        query = dns.message.make_query(name, "A")
        return dns.query.udp(query, self.address, port=self.port, timeout=timeout)

    def addresses(self, name: str) -> list[str]:
        """The addresses in the reply."""
        return [str(record) for answer in self.ask(name).answer for record in answer]

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def hang(self) -> None:
        """Stop it where it is: its port stays bound and nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)
        # The signal is only on its way when kill(2) returns; a thread may still answer.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)


class Refused(AssertionError):
    """CoreDNS did not start; the message is what it said."""


@contextmanager
def running_coredns(
    folder: Path, corefile: str, *, port: int | None = None, peer: str = "coredns"
) -> Iterator[CoreDns]:
    """CoreDNS on a Corefile; `port` is where blocks listen that name none, and where it is asked.

    Raises Refused with its output where it does not take the Corefile.
    """
    port = free_port() if port is None else port
    path = folder / f"Corefile-{port}"
    path.write_bytes(corefile.encode(errors="surrogateescape"))
    command = [program(peer), "-conf", str(path), "-dns.port", str(port)]
    with started_coredns(command, folder=folder) as process:
        yield CoreDns(port, process)


@contextmanager
def started_coredns(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A command that becomes CoreDNS, from the moment that it listens to its end. Raises Refused with its output."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    # It goes on writing to a pipe that nobody would read otherwise.
    drain = threading.Thread(target=process.stdout.read if process.stdout else None)
    try:
        _wait_for_banner(process)
        drain.start()
        yield process
    finally:
        process.kill()
        process.wait()
        if drain.ident is not None:
            drain.join()
        if process.stdout:
            process.stdout.close()


def coredns_version(peer: str = "coredns") -> tuple[int, ...]:
    """What a CoreDNS says of itself, as three numbers."""
    said = subprocess.run([program(peer), "-version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, said.split()[0].removeprefix(_BANNER).split(".")))


def answering(address: str) -> str:
    """The Corefile of a server that gives every name one address."""
    return f'. {{\n template IN A . {{\n  answer "{{{{ .Name }}}} 5 IN A {address}"\n }}\n}}\n'


def _wait_for_banner(process: subprocess.Popen[str]) -> None:
    """Read what it prints up to the banner; its end without one is a refusal."""
    if process.stdout is None:
        raise AssertionError("the output is not piped")
    too_late = threading.Timer(START_SECONDS, process.kill)
    too_late.start()
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith(_BANNER):
                break
        else:
            raise Refused("".join(said))
    finally:
        too_late.cancel()
