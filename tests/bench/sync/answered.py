"""From an Ingress that was created to its first answer over UDP, at a steady rate of creations.

The law: a creation goes out on its time, whatever became of those before it. The clock starts when the API server has
said that the object is there; the time that it took to say so is told beside it. A name that is not answered within
PATIENCE counts as that.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tests.bench.dns.prober import is_answer
from tests.bench.sync.filling import ZONE, manifest_of, namespace_of
from tests.dnsproxy.messages import query
from tests.peers.apiserver import ApiServer, collection_path, send

PATIENCE: Final = 5.0
_FIRST: Final = 10_000_000
"""Numbers of objects that no filling makes."""
_LOOK_SECONDS: Final = 0.001
_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class Creation:
    """One object; seconds."""

    created: float
    """Until the API server had said yes."""
    answered: float
    """From then on until the first answer."""


def create_and_ask(server: ApiServer, port: int, *, rate: float, seconds: float) -> list[Creation]:
    """Create at this rate for so long, ask for each name until it is answered, and delete all again."""
    numbers = range(_FIRST, _FIRST + max(1, round(rate * seconds)))
    begun = time.monotonic() + 1 / rate
    connections = threading.local()
    with ThreadPoolExecutor(_THREADS) as pool:

        def run(number: int) -> Creation:
            time.sleep(max(0.0, begun + (number - _FIRST) / rate - time.monotonic()))
            return _create(server, connections, port, number)

        try:
            return list(pool.map(run, numbers))
        finally:
            list(pool.map(lambda number: _delete(server, number), numbers))


def _create(server: ApiServer, connections: threading.local, port: int, number: int) -> Creation:
    if not hasattr(connections, "kept"):
        # A handshake is the administrator's time, not the cluster's.
        connections.manager = server.connection()
        connections.kept = connections.manager.__enter__()
    kept: http.client.HTTPSConnection = connections.kept
    begun = time.monotonic()
    send(kept, "POST", collection_path(namespace_of(number)), manifest_of(number))
    created = time.monotonic()
    _ask_until_answered(port, f"h{number}.{ZONE}", until=created + PATIENCE)
    return Creation(created - begun, time.monotonic() - created)


def _ask_until_answered(port: int, name: str, *, until: float) -> None:
    message = query(name)
    with _client(port) as client:
        number = 0
        while time.monotonic() < until:
            number += 1
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


def _delete(server: ApiServer, number: int) -> None:
    server.delete_ingress(f"i{number}", namespace=namespace_of(number))
