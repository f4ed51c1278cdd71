"""A client that asks one HTTP request at a time, and knows when the machine held it up.

The law: a request counts only where nobody on its way, the client included, was ready to run and had to wait for a
processor for long (schedstat, proc(5)). What is left is what the relay itself made the request wait for: a wake-up that
was missed, a timer, an acknowledgement that was held back. How many were left out is told as well.

    python -m tests.bench.relay.asking PORT SECONDS keep|new PROCESS...      prints Answers as JSON
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Final

from tests.bench.kit.clock import parse_schedstat
from tests.bench.kit.figures import percentile

HELD_UP: Final = 0.0001
"""Seconds in the queue of a processor from which a request is not counted."""
_PAUSES: Final = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0005, 0.002, 0.01)
"""Seconds before a request: to meet the relay awake, about to sleep, and asleep."""
_SILENCE: Final = 30.0


@dataclass(frozen=True, slots=True)
class Answers:
    """What one run measured."""

    requests: int
    held_up: int
    """How many of them the machine held up; the times are those of the others."""
    seconds: float
    p50_ms: float | None
    p99_ms: float | None
    longest_ms: float | None


def parse_answers(text: str) -> Answers:
    """What this program prints. Raises ValueError, TypeError."""
    return Answers(**json.loads(text))


def judge(asked: Sequence[tuple[float, float]], *, seconds: float) -> Answers:
    """Requests by their time and the time that somebody waited for a processor, in seconds."""
    times = [1000 * spent for spent, queued in asked if queued < HELD_UP]
    figures = (percentile(times, share) for share in (0.5, 0.99, 1.0))
    return Answers(len(asked), len(asked) - len(times), seconds, *figures)


def ask(port: int, seconds: float, *, keep_alive: bool, processes: Sequence[int]) -> Answers:
    """Ask until the seconds are over, at least once. Raises OSError."""
    folders = [Path(f"/proc/{process}/task") for process in (os.getpid(), *processes)]
    asked = []
    begun = time.perf_counter()
    with contextlib.closing(_keeping(port) if keep_alive else _anew(port)) as answers:
        for pause in cycle(_PAUSES):
            time.sleep(pause)
            before = _queued(folders)
            spent = next(answers)
            asked.append((spent, _queued(folders) - before))
            if time.perf_counter() - begun >= seconds:
                break
    return judge(asked, seconds=time.perf_counter() - begun)


def _keeping(port: int) -> Generator[float, None, None]:
    """The seconds of each request on one connection."""
    with _connect(port) as server:
        while True:
            yield _timed(lambda: _request(server, b""))


def _anew(port: int) -> Generator[float, None, None]:
    """The seconds of each request with its connection, from the first segment to the end that the server makes."""

    def once() -> None:
        with _connect(port) as server:
            _request(server, b"Connection: close\r\n")
            while server.recv(65_536):
                pass

    while True:
        yield _timed(once)


def _timed(step: Callable[[], None]) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=_SILENCE)


def _request(server: socket.socket, field: bytes) -> None:
    server.sendall(b"GET / HTTP/1.1\r\nHost: example.org\r\n%b\r\n" % field)
    answer = server.recv(65_536)
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise OSError(f"no answer, but {answer[:100]!r}")


def _queued(folders: Sequence[Path]) -> float:
    """The seconds that threads were ready to run and did not, so far."""
    return sum(parse_schedstat(path.read_text()) for folder in folders for path in folder.glob("*/schedstat"))


def main(arguments: Sequence[str]) -> None:
    """See the head of this file."""
    port, seconds, how, *processes = arguments
    answers = ask(int(port), float(seconds), keep_alive=how == "keep", processes=[int(each) for each in processes])
    print(json.dumps(asdict(answers)))  # noqa: T201  # its output


if __name__ == "__main__":
    main(sys.argv[1:])
