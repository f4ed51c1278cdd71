"""A real CoreDNS on loopback, for the duration of a `with` block.

It ends only the process that it started, by handle.
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
from typing import IO

import dns.exception
import dns.message
import dns.query

from tests.kit.ports import free_port
from tests.kit.programs import program

START_SECONDS = 60.0
"""It needs a fraction of a second on an idle machine."""
_BANNER = "CoreDNS-"
"""CoreDNS prints this once every server listens."""


@dataclass(frozen=True)
class CoreDns:
    """A running CoreDNS."""

    port: int
    process: subprocess.Popen[str]
    address: str = "127.0.0.1"
    log: Path | None = None
    """What it has said since its start."""

    def ask(self, name: str, *, timeout: float = 10.0) -> dns.message.Message:
        """The reply to a question for A."""
        query = dns.message.make_query(name, "A")
        return dns.query.udp(query, self.address, port=self.port, timeout=timeout)

    def addresses(self, name: str) -> list[str]:
        """The addresses in the reply."""
        return [str(record) for answer in self.ask(name).answer for record in answer]

    def kill(self) -> None:
        """SIGKILL, like a crash."""
        self.process.kill()
        self.process.wait()

    def hang(self) -> None:
        """SIGSTOP: its port stays bound, but it answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        # kill(2) returns before the signal is delivered; a thread may still answer.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)


class Refused(AssertionError):
    """CoreDNS did not start; the message is its output."""


@contextmanager
def running_coredns(
    folder: Path, corefile: str, *, port: int | None = None, peer: str = "coredns"
) -> Iterator[CoreDns]:
    """CoreDNS with a Corefile; `port` is the default port of its blocks, and the port for queries.

    Raises Refused with its output if it rejects the Corefile.
    """
    port = free_port() if port is None else port
    path = folder / f"Corefile-{port}"
    path.write_bytes(corefile.encode(errors="surrogateescape"))
    command = [program(peer), "-conf", str(path), "-dns.port", str(port)]
    log = folder / f"coredns-{port}.log"
    with started_coredns(command, folder=folder, log=log) as process:
        yield CoreDns(port, process, log=log)


@contextmanager
def started_coredns(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Run a command that becomes CoreDNS, from its readiness to its end; `log` gets its later output.

    Raises Refused with its output.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    # Its further output is read, so that the pipe does not fill up.
    drain = threading.Thread(target=_keep, args=[process.stdout, log or Path(os.devnull)])
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
    """The version that a CoreDNS reports, as three numbers."""
    said = subprocess.run([program(peer), "-version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, said.split()[0].removeprefix(_BANNER).split(".")))


def answering(address: str) -> str:
    """The Corefile of a server that gives every name one address."""
    return f'. {{\n template IN A . {{\n  answer "{{{{ .Name }}}} 5 IN A {address}"\n }}\n}}\n'


def _keep(output: IO[str], log: Path) -> None:
    with log.open("a", encoding="utf-8", buffering=1) as kept:
        kept.writelines(output)


def _wait_for_banner(process: subprocess.Popen[str]) -> None:
    """Read its output up to the banner. If it ends without one, it has rejected the Corefile."""
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
