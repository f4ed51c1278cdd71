"""One exchange with a DNS server: a query over UDP, sent again, and then over TCP.

The law: each exchange has a new socket, so that every server behind a Service gets some queries, and takes a bounded
time, whatever the server does. Tested in test_probing.py.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import trio

from dnsproxy.dns import probe
from sidecar.sockets.socket_address import family_of, socket_address
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Patience:
    """The number of queries and their deadlines."""

    times: int = 8
    """Queries for one server and zone: with two replicas behind it, 1 run in 128 misses one of them."""
    datagrams: tuple[float, ...] = (1.0, 1.5)
    """Seconds to wait for each datagram: CoreDNS skips a dead upstream within two seconds."""
    stream: float = 2.0
    """Seconds for the query over TCP, if no reply came over UDP."""


T = TypeVar("T")

_LARGEST: Final = 65_535


@dataclass(frozen=True, slots=True)
class NoReply:
    """There is no reply, and why."""

    why: str


async def ask_together(ask: Callable[[bytes], Awaitable[T]], queries: Sequence[bytes]) -> tuple[T, ...]:
    """The results of queries that are sent at the same time, in their order."""
    found: dict[int, T] = {}

    async def one(number: int, query: bytes) -> None:
        found[number] = await ask(query)

    async with trio.open_nursery() as nursery:
        for number, query in enumerate(queries):
            nursery.start_soon(one, number, query)
    return tuple(found[number] for number in range(len(queries)))


async def exchange(endpoint: Endpoint, query: bytes, patience: Patience) -> bytes | NoReply:
    """The reply to a query, which may be for any name."""
    fault = "no answer"
    for over in (_exchange_datagrams, _exchange_stream):
        try:
            return await over(endpoint, query, patience)
        except trio.TooSlowError:
            continue
        except OSError as error:
            fault = os.strerror(error.errno) if error.errno else str(error)
    return NoReply(fault)


async def _exchange_datagrams(endpoint: Endpoint, query: bytes, patience: Patience) -> bytes:
    with trio.socket.socket(family_of(endpoint), socket.SOCK_DGRAM) as datagrams:
        await datagrams.connect(socket_address(endpoint))
        for seconds in patience.datagrams:
            await datagrams.send(query)
            with trio.move_on_after(seconds):
                while True:
                    reply = await datagrams.recv(_LARGEST)
                    if probe.read_reply(query, reply) is not probe.Reply.NONE:
                        return reply
    raise trio.TooSlowError


async def _exchange_stream(endpoint: Endpoint, query: bytes, patience: Patience) -> bytes:
    with trio.fail_after(patience.stream), trio.socket.socket(family_of(endpoint), socket.SOCK_STREAM) as connecting:
        await connecting.connect(socket_address(endpoint))
        async with trio.SocketStream(connecting) as stream:
            try:
                await stream.send_all(len(query).to_bytes(2, "big") + query)
                reply = await _receive(stream, int.from_bytes(await _receive(stream, 2), "big"))
            except trio.BrokenResourceError as error:
                raise OSError("the connection broke") from error
    if probe.read_reply(query, reply) is probe.Reply.NONE:
        raise OSError("the reply is not from a DNS server")
    return reply


async def _receive(stream: trio.SocketStream, size: int) -> bytes:
    octets = b""
    while len(octets) < size:
        more = bytes(await stream.receive_some(size - len(octets)))
        if not more:
            raise OSError("the connection was closed")
        octets += more
    return octets
