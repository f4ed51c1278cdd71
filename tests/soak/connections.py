"""TCP clients of a soak: well-behaved ones that pipeline and check the replies, and others that disconnect early.

The law: each connection is a task with a deadline, from its own address; errors of the server are counted and end no
other task.
"""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass
from typing import Final

import trio

from tests.kit.upstream_replies import framed
from tests.soak.datagrams import random_loopback
from tests.soak.questions import Question, stream_question, table_question
from tests.soak.tally import Kind, Result, Tally

MOST_PIPELINED: Final = 20
_PATIENCE: Final = 10.0
"""Seconds for all replies of a connection: each may wait for an upstream, all of them in parallel."""
_REUSED_AFTER: Final = 9.0
"""Seconds between two queries of a long-lived connection: CoreDNS reuses one that has been idle for ten."""
_LINGER_RESET: Final = b"\1\0\0\0\0\0\0\0"


@dataclass(frozen=True)
class Connections:
    """Opens connections to a loopback port."""

    port: int
    tally: Tally
    chance: random.Random

    async def converse(self) -> None:
        """Some questions in one or several writes, all their replies in any order, and FIN from both sides."""
        questions = [stream_question(self.chance) for _ in range(self.chance.randint(1, MOST_PIPELINED))]
        try:
            async with await self._open() as stream:
                self.tally.events["TCP conversations"] += 1
                await self._converse(stream, questions)
        except (OSError, trio.BrokenResourceError) as error:
            self.tally.note(Kind.STREAM, Result.WRONG, repr(error))

    async def keep(self) -> None:
        """One question at a time, with CoreDNS's pauses, until cancelled."""
        while True:
            try:
                async with await self._open() as stream:
                    self.tally.events["TCP connections kept"] += 1
                    while True:
                        await self._converse(stream, [table_question(self.chance)], ends=False)
                        await trio.sleep(_REUSED_AFTER)
            except (OSError, trio.BrokenResourceError) as error:
                self.tally.note(Kind.STREAM, Result.WRONG, f"a kept connection: {error!r}")
                await trio.sleep(_REUSED_AFTER)

    async def drop(self) -> None:
        """Send a part of a conversation and disconnect, in one of the ways of real clients."""
        octets = framed(stream_question(self.chance).message) * self.chance.randint(1, 3)
        try:
            async with await self._open() as stream:
                await stream.send_all(octets[: self.chance.randrange(len(octets) + 1)])
                match self.chance.randrange(3):
                    case 0:
                        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
                    case 1:
                        await stream.send_eof()
        except (OSError, trio.BrokenResourceError):
            self.tally.events["dropped connections that failed"] += 1
        self.tally.events["TCP connections dropped"] += 1

    async def _open(self) -> trio.SocketStream:
        sock = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            await sock.bind((random_loopback(self.chance), 0))
            await sock.connect(("127.0.0.1", self.port))
        except BaseException:
            sock.close()
            raise
        return trio.SocketStream(sock)

    async def _converse(self, stream: trio.SocketStream, questions: list[Question], *, ends: bool = True) -> None:
        waiting = {number.to_bytes(2, "big"): question for number, question in enumerate(questions)}
        with trio.move_on_after(_PATIENCE):
            octets = b"".join(framed(question.with_id(ident)) for ident, question in waiting.items())
            split = self.chance.randrange(len(octets))
            for piece in (octets[:split], octets[split:]):
                await stream.send_all(piece)
            if ends and self.chance.random() < 0.5:
                await stream.send_eof()
            await self._take_answers(stream, waiting)
        for question in waiting.values():
            self.tally.note(Kind.STREAM, Result.LOST, str(question.kind))

    async def _take_answers(self, stream: trio.SocketStream, waiting: dict[bytes, Question]) -> None:
        received = bytearray()
        while waiting:
            chunk = await stream.receive_some()
            if not chunk:
                self.tally.note(Kind.STREAM, Result.WRONG, f"FIN with {len(waiting)} answers missing")
                return
            received += chunk
            while len(received) >= 2 and len(received) >= (end := 2 + int.from_bytes(received[:2], "big")):
                reply = bytes(received[2:end])
                del received[:end]
                question = waiting.pop(reply[:2], None)
                if question is None:
                    self.tally.note(Kind.STREAM, Result.WRONG, "an answer to nothing")
                else:
                    self.tally.note(Kind.STREAM, *question.judge(reply))
