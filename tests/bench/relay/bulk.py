"""A server that takes or gives many octets, and a client that asks it to: the two ends of a bulk transfer.

The law: neither end is what holds a relay up. What is sent comes from pages that are there already (sendfile(2)), what
is received is thrown away in the kernel (MSG_TRUNC, tcp(7)); so all that a transfer costs is what the kernel does with
it, and what the relay does.

    python -m tests.bench.relay.bulk serve PORT
    python -m tests.bench.relay.bulk ask PORT download|upload OCTETS SECONDS      prints a Transfers as JSON
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import Final

_SOURCE: Final = 64 << 20
"""Octets that are sent again and again."""
_ROOM: Final = 4 << 20
_NAP: Final = 0.0002
"""Seconds between two looks at a socket. Who sends to a process that waits pays for waking it where both are on one
computer, and over a network nobody does: so neither end ever waits."""
_SILENCE: Final = 30.0
_HEADER: Final = b"PROXY TCP4 127.0.0.1 127.0.0.1 "
_DONE: Final = b"+"


class Fault(Exception):
    """A relay did not relay what it should."""


@dataclass(frozen=True, slots=True)
class Transfers:
    """Some transfers of the same size, one after the other."""

    octets: int
    """Of all together."""
    seconds: float
    count: int


def parse_transfers(text: str) -> Transfers:
    """What `ask` prints. Raises ValueError, TypeError."""
    return Transfers(**json.loads(text))


def serve(port: int) -> None:
    """Do what clients ask for, until killed."""
    source = _make_source()
    with socket.create_server(("127.0.0.1", port), backlog=64) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve_one, args=(client, source), daemon=True).start()


def _serve_one(client: socket.socket, source: int) -> None:
    # Who asked notices by itself where a relay left early, and tells it.
    with client, contextlib.suppress(OSError, Fault):
        client.settimeout(_SILENCE)
        request = _read_request(client)
        if request is None:
            return
        what, size = request
        if what == b"download":
            _send(client, source, size)
        else:
            client.sendall(_DONE)
            _discard(client, size)
            client.sendall(_DONE)
        # The end is the client's to make.
        client.recv(1)


def _read_request(client: socket.socket) -> tuple[bytes, int] | None:
    """A header that a relay must have sent, and a line of the client's; None where it is something else."""
    octets = b""
    while octets.count(b"\n") < 2:  # two lines
        more = client.recv(4096)
        if not more:
            return None
        octets += more
    header, line, _ = octets.split(b"\n")
    if not header.startswith(_HEADER):
        return None
    what, size = line.split()
    return what, int(size)


def ask(port: int, what: str, size: int, seconds: float) -> Transfers:
    """Transfer until the seconds are over, at least once. Raises Fault, OSError."""
    source = _make_source()
    octets, spent, count = 0, 0.0, 0
    while not count or spent < seconds:
        with socket.create_connection(("127.0.0.1", port), timeout=_SILENCE) as server:
            server.sendall(f"{what} {size}\n".encode())
            if what == "download":
                begun = time.perf_counter()
                _discard(server, size)
            else:
                _expect_done(server)
                begun = time.perf_counter()
                _send(server, source, size)
                _expect_done(server)
            spent += time.perf_counter() - begun
        octets, count = octets + size, count + 1
    return Transfers(octets, spent, count)


def _expect_done(server: socket.socket) -> None:
    if server.recv(1) != _DONE:
        raise Fault("the server did not get what was sent")


def _make_source() -> int:
    source = os.memfd_create("octets")
    os.write(source, bytes(range(256)) * (_SOURCE // 256))
    return source


def _send(to: socket.socket, source: int, size: int) -> None:
    left = size
    to.setblocking(False)
    while left:
        try:
            left -= os.sendfile(to.fileno(), source, 0, min(left, _SOURCE))
        except BlockingIOError:
            time.sleep(_NAP)
    to.settimeout(_SILENCE)


def _discard(one: socket.socket, size: int) -> None:
    room = bytearray(_ROOM)
    left = size
    one.setblocking(False)
    while left:
        try:
            count = one.recv_into(room, min(left, _ROOM), socket.MSG_TRUNC)
        except BlockingIOError:
            time.sleep(_NAP)
            continue
        if not count:
            raise Fault(f"the connection ended {left} octets too early")
        left -= count
    one.settimeout(_SILENCE)


def main(arguments: list[str]) -> None:
    """See the head of this file."""
    if arguments[0] == "serve":
        serve(int(arguments[1]))
    else:
        _, port, what, size, seconds = arguments
        print(json.dumps(asdict(ask(int(port), what, int(size), float(seconds)))))  # noqa: T201  # its output


if __name__ == "__main__":
    main(sys.argv[1:])
