"""Questions on a steady clock, over one connected UDP socket.

The law: the next question goes out on time whatever became of those before it, each is asked once, and a reply's time
is the kernel's, taken when it reached our socket.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_SO_TIMESTAMPNS: Final = 35  # asm-generic/socket.h; the socket module lacks it
_TIMESPEC: Final = struct.Struct("qq")
_RECEIVE_BUFFER: Final = 4 << 20
_LARGEST_REPLY: Final = 4096
_LOOK_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Heard:
    """What became of one question."""

    number: int
    """Its place among the questions, from 0."""
    at: float
    """Seconds of time.monotonic when it went out."""
    seconds: float
    """How long its reply took; the whole patience where there was none."""
    reply: bytes | None


def ask_steadily(server: tuple[str, int], questions: Iterable[bytes], *, rate: float, patience: float) -> list[Heard]:
    """Ask so many a second, each under an ID of its own, then wait up to `patience` seconds for what is missing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        client.setblocking(False)
        client.connect(server)
        asker = _Asker(client)
        begun = time.monotonic()
        for number, question in enumerate(questions):
            asker.receive_until(begun + number / rate)
            asker.send(number, question)
        deadline = time.monotonic() + patience
        while asker.waiting and time.monotonic() < deadline:
            asker.receive_until(min(deadline, time.monotonic() + _LOOK_SECONDS))
        silent = [Heard(number, at, patience, None) for number, at, _ in asker.waiting.values()]
        return asker.heard + silent


class _Asker:
    """The socket and what it waits for, by query ID."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self.waiting: dict[bytes, tuple[int, float, int]] = {}
        """Number, time.monotonic and nanoseconds of time.time_ns, which is the kernel's clock, at which it went out."""
        self.heard: list[Heard] = []

    def send(self, number: int, question: bytes) -> None:
        ident = (number & 0xFFFF).to_bytes(2, "big")
        self.waiting[ident] = number, time.monotonic(), time.time_ns()
        with contextlib.suppress(OSError):  # an ICMP error for an earlier one, or no room: this one is lost
            self._client.send(ident + question[2:])

    def receive_until(self, deadline: float) -> None:
        """Take replies until a moment of time.monotonic."""
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._client], [], [], left)[0]:
                self._receive()

    def _receive(self) -> None:
        try:
            reply, ancillary, _, _ = self._client.recvmsg(_LARGEST_REPLY, 64)
        except OSError:
            return
        waited = self.waiting.pop(reply[:2], None)
        if waited is None:
            return
        number, at, sent = waited
        seconds, nanoseconds = _TIMESPEC.unpack_from(ancillary[0][2])
        self.heard.append(Heard(number, at, (seconds * 1_000_000_000 + nanoseconds - sent) / 1e9, reply))
