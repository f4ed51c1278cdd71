"""Lets a CoreDNS of this computer, if one is on the PATH, load a Corefile before and after a change.

The law: that CoreDNS listens on free loopback ports until it reports that it is ready, is always ended, and runs for a
bounded time. If it rejects the Corefile before the change, nothing is known about the change.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from dnsproxy.corefile.stanza import Version
from dnsproxy.install.change.trial_corefile import Trial
from sidecar.values.text import cut

PROGRAM: Final = "coredns"
START_SECONDS: Final = 20.0
"""Seconds from its start to its banner; a fraction of a second on an idle machine."""
_ATTEMPTS: Final = 3
_BANNER: Final = re.compile(rb"(?m)^CoreDNS-([0-9]+)\.([0-9]+)\.([0-9]+)")
_IN_USE: Final = b"address already in use"
_LARGEST: Final = 64 << 10
_LONGEST: Final = 1000
"""Characters of what it says: it may repeat a word of the Corefile."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a trial."""

    refused: str = ""
    """Why CoreDNS rejects the changed Corefile; empty if it accepts it, or the trial has no result."""
    untried: str = ""
    """Why the trial has no result; empty if it has one."""
    version: Version | None = None
    """The version of the local CoreDNS."""


@dataclass(frozen=True, slots=True)
class _Run:
    version: Version | None = None
    said: bytes = b""

    @property
    def last_line(self) -> str:
        lines = [line for line in self.said.decode(errors="replace").splitlines() if line.strip()]
        return cut(lines[-1].strip(), _LONGEST) if lines else f"no output within {START_SECONDS:g} s"


async def try_change(before: Trial, after: Trial) -> Tried | None:
    """The result of loading a change; None if there is no CoreDNS on the PATH."""
    program = shutil.which(PROGRAM)
    if program is None:
        return None
    first = await _run(program, before)
    if first.version is None:
        return Tried(untried=f"{program} does not load the Corefile from before the change: {first.last_line}")
    second = await _run(program, after)
    if second.version is not None:
        return Tried(version=second.version)
    return Tried(refused=second.last_line, version=first.version)


async def _run(program: str, trial: Trial) -> _Run:
    run = _Run()
    for _ in range(_ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="switchback-") as folder:
            path = Path(folder) / "Corefile"
            path.write_text(trial.format(_free_ports(trial.ports)), encoding="utf-8", errors="surrogateescape")
            run = await _start([program, "-conf", str(path)], folder)
        # Another process took the port after it was found free.
        if _IN_USE not in run.said:
            break
    return run


async def _start(command: Sequence[str], folder: str) -> _Run:
    """Run it until its banner, its end, or the end of its time."""
    try:
        process = await trio.lowlevel.open_process(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        return _Run(said=f"it cannot be started: {error.strerror}".encode())
    output = process.stdout
    if output is None:
        raise RuntimeError("its output is not piped")
    said = b""
    try:
        with trio.move_on_after(START_SECONDS):
            while len(said) < _LARGEST and (chunk := await output.receive_some()):
                said += chunk
                if match := _BANNER.search(said):
                    return _Run(tuple(map(int, match.groups())), said)
        return _Run(said=said)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await output.aclose()


def _free_ports(ports: Sequence[int]) -> Mapping[int, int]:
    """Loopback ports that are free for UDP and TCP; all are bound at the same time, so they differ."""
    with ExitStack() as stack:
        return {port: _free_port(stack) for port in ports}


def _free_port(stack: ExitStack) -> int:
    while True:
        tcp = stack.enter_context(socket.socket())
        tcp.bind(("127.0.0.1", 0))
        udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        try:
            udp.bind(tcp.getsockname())
        except OSError:
            continue
        return int(tcp.getsockname()[1])
