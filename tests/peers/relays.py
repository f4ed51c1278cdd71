"""The real proxy command in front of a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.peers.processes import end_process, free_ports, wait_for
from tests.peers.programs import program


@dataclass(frozen=True)
class RunningRelay:
    """A relay; `listen` and `admin` as a URL has them."""

    listen: str
    port: int
    admin: str


@contextmanager
def relay_to(
    backend: str, folder: Path, *arguments: str, host: str = "127.0.0.1", advertise: int | None = None
) -> Iterator[RunningRelay]:
    """`proxy` with one route from a free port."""
    port, admin = free_ports(2)
    stated = [] if advertise is None else ["--advertise", f"{port}={advertise}"]
    listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    log = folder / "relay.log"
    command = [sys.executable, "-m", "proxy", "--route", f"{listen}={backend}", "--admin", f"127.0.0.1:{admin}"]
    with log.open("wb") as stderr:
        process = subprocess.Popen([*command, *stated, *arguments], stderr=stderr, env=dict(os.environ))
    try:
        wait_for(lambda: b'"relaying"' in log.read_bytes(), process=process, log=log)
        yield RunningRelay(listen, port, f"127.0.0.1:{admin}")
    finally:
        end_process(process)


def curl(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run curl without the surroundings' proxies, configuration and patience; stdout is the body."""
    command = [program("curl"), "-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", "30", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
