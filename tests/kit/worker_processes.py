"""A real `dnsproxy serve --workers N`: its processes, and clients whose queries spread over the workers."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

from tests.kit import messages
from tests.kit.polling import poll_until
from tests.kit.serve_inside import addresses_in
from tests.kit.serve_process import Serving
from tests.kit.upstream_replies import right

CLIENT_SECONDS: Final = 5.0
"""As long as a resolver waits by default (resolv.conf(5), `timeout`)."""
MANY: Final = 64
"""Clients, so that every worker of a few has some: the kernel chooses by the client's port."""


def children_of(process: int) -> list[int]:
    """The living child processes, in the order of their starts."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += [int(one) for one in (task / "children").read_text().split()]
    return sorted(one for one in found if is_alive(one))


def is_alive(process: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def spawner_of(server: Serving) -> int:
    (spawner,) = children_of(server.process.pid)
    return spawner


def workers_of(server: Serving) -> list[int]:
    """The workers, the oldest first."""
    return children_of(spawner_of(server))


def stop(process: int) -> None:
    """SIGSTOP, and wait until it has stopped."""
    os.kill(process, signal.SIGSTOP)
    poll_until(lambda: _state_of(process) == "T", "stopped", seconds=30)


def _state_of(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def waiting_octets(port: int) -> int:
    """Octets of the datagrams that wait in sockets on a port of 127.0.0.1."""
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    return sum(int(row[4].partition(":")[2], 16) for row in rows if row[1].endswith(f":{port:04X}"))


@contextmanager
def clients(port: int, count: int = MANY) -> Iterator[list[socket.socket]]:
    """UDP sockets that are connected to a server."""
    with ExitStack() as stack:
        opened = []
        for _ in range(count):
            one = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            one.connect(("127.0.0.1", port))
            one.settimeout(CLIENT_SECONDS)
            opened.append(one)
        yield opened


def send_all(asking: Sequence[socket.socket], name: str) -> None:
    """One query from each client; its ID is its position."""
    for position, one in enumerate(asking):
        one.send(struct.pack("!H", position) + messages.query(name)[2:])


def receive_all(asking: Sequence[socket.socket], *, seconds: float = CLIENT_SECONDS) -> list[list[str]]:
    """The addresses of the reply to each client. Fails if one has none in time."""
    missing = set(range(len(asking)))
    found: list[list[str]] = [[] for _ in asking]
    while missing:
        ready, _, _ = select.select([asking[one] for one in missing], [], [], seconds)
        assert ready, f"{len(missing)} of {len(asking)} queries are unanswered"
        for one in ready:
            reply = one.recv(4096)
            (position,) = struct.unpack("!H", reply[:2])
            found[position] = addresses_in(reply)
            missing.discard(position)
    return found


def ask_all(port: int, name: str) -> list[list[str]]:
    """The addresses that many clients get for a name."""
    with clients(port) as asking:
        send_all(asking, name)
        return receive_all(asking)


class HeldUpstream(Thread):
    """An upstream that has every name. It answers nothing before `release` is set."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.release = Event()
        self.asked = Event()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.socket.getsockname()[1]}"

    def __enter__(self) -> HeldUpstream:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        # A datagram of no length ends the thread.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ending:
            ending.sendto(b"", self.socket.getsockname())
        self.join()
        self.socket.close()

    def run(self) -> None:
        while True:
            query, client = self.socket.recvfrom(4096)
            if not query:
                return
            # Loop probes are no queries of a client.
            if b"loop-probe" not in query:
                self.asked.set()
                self.release.wait()
            self.socket.sendto(right(query), client)
