"""The real `dnsproxy serve` as a process, for the time of a block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from sidecar.values.endpoints import Endpoint, parse_endpoint
from tests.kit.launched import ROOT
from tests.kit.ports import free_port, free_ports
from tests.kit.processes import end_process, wait_for
from tests.kit.scraping import scrape

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

END_SECONDS = 20
"""More than it may take to answer what is under way."""


@dataclass(frozen=True)
class Serving:
    """A running server."""

    port: int
    admin: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("127.0.0.1", self.port)

    @property
    def admin_endpoint(self) -> Endpoint:
        return parse_endpoint(self.admin)

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        return scrape(self.admin)[name]

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def hang(self) -> None:
        """Stop it where it is: its ports stay bound and nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)
        # The signal is only on its way when kill(2) returns.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> int:
        """Ask it to end as Kubernetes does; its exit status."""
        self.process.terminate()
        return self.process.wait(END_SECONDS)


@contextmanager
def serving(
    folder: Path, *arguments: str, port: int | None = None, environment: Mapping[str, str] = _NOTHING
) -> Iterator[Serving]:
    """`dnsproxy serve` with these flags on a port of loopback, from its readiness to its certain end."""
    port = free_port() if port is None else port
    (admin_port,) = free_ports(1)
    admin = f"127.0.0.1:{admin_port}"
    log = folder / f"dnsproxy-{port}-{admin_port}.log"
    where = ["--listen", f"127.0.0.1:{port}", "--admin", admin, "--log-format", "json"]
    with log.open("wb") as stderr:
        command = [sys.executable, "-m", "dnsproxy", "serve", *where, *arguments]
        surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        process = subprocess.Popen(command, stderr=stderr, env=surroundings)
    try:
        wait_for(lambda: b'"serving"' in log.read_bytes(), process=process, log=log)
        yield Serving(port, admin, process, log)
    finally:
        end_process(process)
