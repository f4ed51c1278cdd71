"""Requests without a pause, each over a connection of its own, and the outcome of each.

The law: a request is made once, so that every failure shows. The threads end with their block.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"
_SECONDS: Final = 20
_THREADS: Final = 3


class HttpLoad:
    """The outcomes so far."""

    def __init__(self, port: int, body: bytes) -> None:
        self.failures: Counter[str] = Counter()
        self.succeeded = 0
        self._port = port
        self._body = body
        self._lock = threading.Lock()
        self._ending = threading.Event()

    def more(self, count: int) -> None:
        """Wait until so many more requests were answered, well or not."""
        goal, deadline = self._answered() + count, time.monotonic() + _SECONDS
        while self._answered() < goal:
            assert time.monotonic() < deadline, "the requests have stopped"
            time.sleep(0.005)

    def _answered(self) -> int:
        return self.succeeded + sum(self.failures.values())

    def _run(self) -> None:
        while not self._ending.is_set():
            outcome = self._ask()
            with self._lock:
                if outcome:
                    self.failures[outcome] += 1
                else:
                    self.succeeded += 1

    def _ask(self) -> str:
        """Empty for the expected page."""
        received = b""
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=_SECONDS) as client:
                client.sendall(_REQUEST)
                while octets := client.recv(65_536):
                    received += octets
        except OSError as error:
            return repr(error)
        return "" if received.startswith(b"HTTP/1.1 200 ") and self._body in received else repr(received[:100])

    def end(self) -> None:
        self._ending.set()

    def start(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._run) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        return threads


@contextmanager
def http_load(port: int, *, body: str) -> Iterator[HttpLoad]:
    """Requests to a port of 127.0.0.1 for the duration of the block."""
    load = HttpLoad(port, body.encode())
    threads = load.start()
    try:
        yield load
    finally:
        load.end()
        for thread in threads:
            thread.join()
