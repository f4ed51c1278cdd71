"""Flights without a forwarder, a port that records its replies, and a receiver that records its events."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from dnsproxy.answers.decide import Forward
from dnsproxy.datagrams.port import BATCH, Sender
from dnsproxy.forward.flight import Flight
from dnsproxy.forward.upstream import Upstream
from dnsproxy.forward.upstream_socket import UpstreamSocket
from tests.kit import messages

SENDER: Sender = (("192.0.2.9", 5353), (), "192.0.2.9")


class NotedPort:
    """A port that only records the replies that leave."""

    socket: socket.socket
    send_errors = 0

    def __init__(self) -> None:
        self.posted: list[tuple[bytes, Sender]] = []
        self.flushed = 0

    def receive(self, limit: int = BATCH) -> list[bytes]:
        raise NotImplementedError

    def age(self) -> float:
        raise NotImplementedError

    def message(self, position: int) -> bytes:
        raise NotImplementedError

    def send(self, bodies: Sequence[bytes | None]) -> None:
        raise NotImplementedError

    def sender(self, position: int) -> Sender:
        raise NotImplementedError

    def post(self, message: bytes, sender: Sender) -> None:
        self.posted.append((message, sender))

    def flush(self) -> None:
        self.flushed += 1

    def host(self, sender: Sender) -> str:
        del sender
        return "192.0.2.1"

    def source_port(self, sender: Sender) -> int:
        return int(sender[0][1])


class Noted:
    """A receiver that records the events of sockets."""

    def __init__(self) -> None:
        self.replies: list[bytes] = []
        self.batches: list[int] = []
        self.refused: list[UpstreamSocket] = []

    def arrived(self, sock: UpstreamSocket, replies: list[bytes]) -> None:
        assert sock not in self.refused, "a reply that arrives with a refusal is reported before it"
        self.replies += replies
        self.batches.append(len(replies))

    def broken(self, sock: UpstreamSocket) -> None:
        self.refused.append(sock)


def flight(message: bytes | None = None, *, route: Sequence[Upstream] = (), started: float = 0.0) -> Flight:
    """A flight for which no upstream was asked yet."""
    query = messages.scanned(messages.query("www.example.net") if message is None else message)
    forward = Forward(query, shields=False)
    return Flight(forward, (NotedPort(), SENDER, query.message[:2]), query.message[2:], route, started)


def large_flight(octets: int = 65_600) -> Flight:
    """A flight whose query is too large for a datagram: the kernel refuses it with EMSGSIZE."""
    made = flight()
    made.key += bytes(octets - len(made.key))
    return made
