"""UDP clients of a soak: sockets that ask from always new addresses and ports, and check the replies."""

from __future__ import annotations

import contextlib
import random
import socket
from dataclasses import dataclass, field
from typing import Final

import trio

from tests.soak.questions import Question
from tests.soak.tally import Result, Tally

CLIENTS: Final = 16
"""Number of sockets in parallel."""
_LIFE: Final = (5.0, 30.0)
"""Seconds until a client is replaced by another."""
_PATIENCE: Final = 4.0
"""Seconds until a question counts as lost: twice the maximum wait of a client of ours."""
_RECEIVE_BUFFER: Final = 1 << 20


def random_loopback(chance: random.Random) -> str:
    """An address of 127/8: the server's memory of clients must not grow with their number."""
    return f"127.{chance.randrange(1, 255)}.{chance.randrange(256)}.{chance.randrange(1, 255)}"


@dataclass
class Datagrams:
    """The clients; `ask` works while `run` runs."""

    port: int
    tally: Tally
    chance: random.Random
    _clients: list[_Client] = field(default_factory=list)

    async def run(self) -> None:
        """Keep the clients running until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(self._keep_one)

    async def _keep_one(self) -> None:
        while True:
            with _Client(self.port, self.tally, source=random_loopback(self.chance)) as client:
                self._clients.append(client)
                with trio.move_on_after(self.chance.uniform(*_LIFE)):
                    await client.receive()
                # Its queries may still be answered; it sends no new ones.
                self._clients.remove(client)
                with trio.move_on_after(_PATIENCE):
                    await client.receive()
                client.expire(trio.current_time())
            self.tally.events["UDP clients"] += 1

    def ask(self, question: Question) -> None:
        """Ask from one of the clients, if there is one."""
        if self._clients:
            self.chance.choice(self._clients).ask(question, self.chance.randbytes(2))


class _Client:
    def __init__(self, port: int, tally: Tally, *, source: str) -> None:
        self._tally = tally
        self._waiting: dict[bytes, tuple[float, Question]] = {}
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._sock.setblocking(False)
        self._sock.bind((source, 0))
        self._sock.connect(("127.0.0.1", port))

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def ask(self, question: Question, ident: bytes) -> None:
        if ident in self._waiting:
            return  # replies with the same ID are indistinguishable
        self._waiting[ident] = trio.current_time(), question
        with contextlib.suppress(OSError):  # no buffer space, or no listener: this question is lost
            self._sock.send(question.with_id(ident))

    async def receive(self) -> None:
        """Check replies until cancelled."""
        while True:
            with trio.move_on_after(1):
                await trio.lowlevel.wait_readable(self._sock)
                self._drain()
            self.expire(trio.current_time() - _PATIENCE)

    def _drain(self) -> None:
        while True:
            try:
                reply = self._sock.recv(65535)
            except OSError:
                return
            _, question = self._waiting.pop(reply[:2], (0.0, None))
            if question is not None:
                self._tally.note(question.kind, *question.judge(reply))

    def expire(self, before: float) -> None:
        """Count old questions as lost; they are in the order of sending."""
        for ident, (asked_at, question) in list(self._waiting.items()):
            if asked_at >= before:
                return
            del self._waiting[ident]
            self._tally.note(question.kind, Result.LOST)
