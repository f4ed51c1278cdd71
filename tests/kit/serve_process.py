"""The real `dnsproxy serve` as a process, for the duration of a block."""

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
from tests.kit.launched import ROOT, limited
from tests.kit.ports import free_port, free_ports
from tests.kit.processes import end_process, wait_for
from tests.kit.scraping import scrape

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

END_SECONDS = 20
"""Longer than the drain of open queries may take."""


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
        """SIGKILL, like a crash."""
        self.process.kill()
        self.process.wait()

    def hang(self) -> None:
        """SIGSTOP: its ports stay bound, but it answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        # kill(2) returns before the signal is delivered.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> int:
        """Terminate it as Kubernetes does. Returns its exit status."""
        self.process.terminate()
        return self.process.wait(END_SECONDS)


@contextmanager
def serving(
    folder: Path,
    *arguments: str,
    port: int | None = None,
    environment: Mapping[str, str] = _NOTHING,
    open_files: tuple[int, int] | None = None,
) -> Iterator[Serving]:
    """`dnsproxy serve` with these flags on a loopback port, from its readiness to its guaranteed end.

    `open_files`: its soft and its hard limit of descriptors.
    """
    port = free_port() if port is None else port
    (admin_port,) = free_ports(1)
    admin = f"127.0.0.1:{admin_port}"
    log = folder / f"dnsproxy-{port}-{admin_port}.log"
    where = ["--listen", f"127.0.0.1:{port}", "--admin", admin, "--log-format", "json"]
    with log.open("wb") as stderr:
        command = [*limited(open_files), sys.executable, "-m", "dnsproxy", "serve", *where, *arguments]
        surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        process = subprocess.Popen(command, stderr=stderr, env=surroundings)
    try:
        wait_for(lambda: b'"serving"' in log.read_bytes(), process=process, log=log)
        yield Serving(port, admin, process, log)
    finally:
        end_process(process)
