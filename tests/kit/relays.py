"""The real proxy command in front of a real server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.ports import free_ports
from tests.kit.processes import end_process, wait_for
from tests.kit.programs import program


@dataclass(frozen=True)
class RunningRelay:
    """A running relay; `listen` and `admin` have the form of a URL."""

    listen: str
    port: int
    admin: str


@contextmanager
def relay_to(
    backend: str, folder: Path, *arguments: str, host: str = "127.0.0.1", advertise: int | None = None
) -> Iterator[RunningRelay]:
    """Run `proxy` with one route from a free port."""
    log = folder / "relay.log"

    def command(port: int, admin: int) -> list[str]:
        stated = [] if advertise is None else ["--advertise", f"{port}={advertise}"]
        where = ["--route", f"{_listen(host, port)}={backend}", "--admin", f"127.0.0.1:{admin}"]
        return [sys.executable, "-m", "proxy", *where, *stated, *arguments]

    process, (port, admin) = start_relay(command, log)
    try:
        yield RunningRelay(_listen(host, port), port, f"127.0.0.1:{admin}")
    finally:
        end_process(process)


def start_relay(
    command: Callable[[int, int], Sequence[str]], log: Path
) -> tuple[subprocess.Popen[bytes], tuple[int, int]]:
    """Start `command(port, admin)` with two free ports, and wait until it relays."""
    port, admin = free_ports(2)
    with log.open("wb") as output:
        process = subprocess.Popen(command(port, admin), stdout=output, stderr=output, env=dict(os.environ))
    try:
        wait_for(lambda: b'"limits"' in log.read_bytes(), process=process, log=log)
    except BaseException:
        end_process(process)
        raise
    return process, (port, admin)


def _listen(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def answer_to(port: int, *pieces: bytes) -> bytes:
    """All that a client receives that sends the pieces in segments of their own; empty after a reset."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces:
                client.sendall(piece)
            while octets := client.recv(65_536):
                received += octets
        except (ConnectionResetError, BrokenPipeError):
            pass
    return received


def curl(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run curl without the proxies and configuration of the environment; stdout is the body."""
    command = [program("curl"), "-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", "30", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
