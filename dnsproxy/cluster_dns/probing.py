"""Probing: asks DNS servers for names that only dnsproxy answers, several times, over UDP and then TCP.

The law: each query has a new nonce and a new socket, so that no cache answers it and every server behind a Service gets
some queries. All queries together take a bounded time, whatever the servers do.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import trio

from dnsproxy.cluster_dns.probe_results import Outcome, ProbeResult
from dnsproxy.dns import probe
from dnsproxy.dns.wire import rcode_of
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


_LARGEST: Final = 65_535


async def ask_all(
    endpoints: Sequence[Endpoint], zones: Sequence[str], patience: Patience | None = None
) -> tuple[ProbeResult, ...]:
    """The results of each server for each zone (in normal form, or `.`), all asked at the same time."""
    asked: dict[tuple[Endpoint, str], ProbeResult] = {}

    async def ask_one(endpoint: Endpoint, zone: str) -> None:
        asked[endpoint, zone] = await ask(endpoint, zone, patience)

    pairs = [(endpoint, zone) for endpoint in endpoints for zone in zones]
    async with trio.open_nursery() as nursery:
        for pair in pairs:
            nursery.start_soon(ask_one, *pair)
    return tuple(asked[pair] for pair in pairs)


async def ask(endpoint: Endpoint, zone: str, patience: Patience | None = None) -> ProbeResult:
    """The result of one server for one zone. A zone too long for a probe is an outcome too."""
    patience = patience or Patience()
    outcomes: list[Outcome] = []

    async def collect(query: bytes) -> None:
        outcomes.append(await ask_once(endpoint, query, patience))

    try:
        queries = [_make_query(zone) for _ in range(patience.times)]
    except ValueError as error:
        return ProbeResult(endpoint, zone, (Outcome(fault=str(error)),))
    async with trio.open_nursery() as nursery:
        for query in queries:
            nursery.start_soon(collect, query)
    return ProbeResult(endpoint, zone, tuple(outcomes))


def _make_query(zone: str) -> bytes:
    name = probe.probe_name(zone, secrets.token_hex(probe.NONCE_DIGITS // 2))
    return probe.format_query(name, secrets.randbits(16))


async def ask_once(endpoint: Endpoint, query: bytes, patience: Patience) -> Outcome:
    """The outcome of one query, which may be for any name; the deadlines of `patience` bound it."""
    fault = "no answer"
    for exchange in (_exchange_datagrams, _exchange_stream):
        try:
            reply = await exchange(endpoint, query, patience)
        except trio.TooSlowError:
            continue
        except OSError as error:
            fault = os.strerror(error.errno) if error.errno else str(error)
            continue
        ours = probe.read_reply(query, reply) is probe.Reply.OURS
        forwards = probe.read_forwards(reply) if ours else None
        return Outcome(ours=ours, rcode=rcode_of(reply), forwards=forwards)
    return Outcome(fault=fault)


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
