"""The real `dnstap` program as a collector, for the duration of a block."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.kit.ports import free_port
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Collecting:
    """A running collector and what it printed."""

    process: subprocess.Popen[bytes]
    output: Path
    log: Path

    def lines(self) -> list[str]:
        """The whole lines so far."""
        text = self.output.read_text() if self.output.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def messages(self) -> list[dict[str, Any]]:
        """The objects of its JSON output."""
        return [json.loads(line) for line in self.lines()]

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """The messages, as soon as there are so many."""
        wait_until(lambda: len(self.lines()) >= count, what=lambda: f"{self.lines()}\n{self.log.read_text()}")
        return self.messages()

    def hang(self) -> None:
        """SIGSTOP: it reads nothing."""
        self.process.send_signal(signal.SIGSTOP)


def wait_until(condition: Callable[[], bool], *, what: Callable[[], str] = str) -> None:
    """Poll another process, with a deadline."""
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def place(folder: Path, transport: str) -> str:
    """Where a collector can listen: the value of --dnstap."""
    return f"unix:{folder / 'dnstap.sock'}" if transport == "unix" else f"tcp:127.0.0.1:{free_port()}"


@contextmanager
def collecting(folder: Path, at: str, *options: str, name: str = "first") -> Iterator[Collecting]:
    """`dnstap` at the value of --dnstap; its output is JSON without other options."""
    kind, _, address = at.partition(":")
    output, log = folder / f"{name}.txt", folder / f"{name}.log"
    command: Sequence[str] = [program("dnstap"), *(options or ("-j",)), "-w", str(output)]
    with log.open("wb") as stderr:
        process = subprocess.Popen([*command, "-u" if kind == "unix" else "-l", address], stderr=stderr)
    try:
        wait_for(lambda: _is_ready(kind, address), process=process, log=log)
        yield Collecting(process, output, log)
    finally:
        end_process(process)


def _is_ready(kind: str, address: str) -> bool:
    return Path(address).is_socket() if kind == "unix" else is_listening(int(address.rpartition(":")[2]))
