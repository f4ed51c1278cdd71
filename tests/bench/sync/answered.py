"""From an object that was created to its first answer over UDP, at a steady rate of creations.

The law: a creation goes out on its time, whatever became of those before it. The clock starts when the API server has
said that the object is there; the time that it took to say so is told beside it. A name that is not answered within
PATIENCE counts as that.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.bench.dns.prober import is_answer
from tests.bench.sync.filling import MOST
from tests.bench.sync.new_object import NewObject
from tests.bench.sync.samples import Creation
from tests.kit.apiserver import ApiServer, send
from tests.kit.messages import query

PATIENCE: Final = 5.0
_LOOK_SECONDS: Final = 0.001
_THREADS: Final = 16


def create_and_ask(
    server: ApiServer, port: int, *, object_of: Callable[[int], NewObject], rate: float, seconds: float
) -> list[Creation]:
    """Create at this rate for so long, ask for each name until it is answered, and delete all again."""
    count = max(1, round(rate * seconds))
    # Numbers of objects that no filling makes.
    made = [object_of(number) for number in range(MOST, MOST + count)]
    begun = time.monotonic() + 1 / rate
    times = [begun + turn / rate for turn in range(count)]
    with ExitStack() as stack:
        creator = _Creator(server, port, stack)
        pool = stack.enter_context(ThreadPoolExecutor(_THREADS))
        try:
            return list(pool.map(creator.create, made, times))
        finally:
            list(pool.map(creator.delete, made))


class _Creator:
    """Each thread keeps a connection, because a handshake is the administrator's time and not the cluster's."""

    def __init__(self, server: ApiServer, port: int, stack: ExitStack) -> None:
        self._server = server
        self._port = port
        self._stack = stack
        self._own = threading.local()

    def create(self, made: NewObject, at: float) -> Creation:
        connection = self._connection()
        time.sleep(max(0.0, at - time.monotonic()))
        begun = time.monotonic()
        for one in made.requests:
            send(connection, one.method, one.path, one.body, content_type=one.content_type)
        created = time.monotonic()
        ask_until_answered(self._port, made.hostname, until=created + PATIENCE)
        return Creation(created - begun, time.monotonic() - created, made.kind)

    def delete(self, made: NewObject) -> None:
        send(self._connection(), "DELETE", made.path)

    def _connection(self) -> http.client.HTTPSConnection:
        if not hasattr(self._own, "connection"):
            self._own.connection = self._stack.enter_context(self._server.connection())
        kept: http.client.HTTPSConnection = self._own.connection
        return kept


def ask_until_answered(port: int, name: str, *, until: float) -> None:
    """Ask loopback for a name a thousand times a second, until a moment of time.monotonic."""
    message = query(name)
    with _client(port) as client:
        number = 0
        while time.monotonic() < until:
            number = (number + 1) & 0xFFFF
            client.send(number.to_bytes(2, "big") + message[2:])
            try:
                while not is_answer(client.recv(4096)):
                    pass
            except TimeoutError:
                continue
            return


@contextmanager
def _client(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.settimeout(_LOOK_SECONDS)
        yield client
