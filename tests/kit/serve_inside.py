"""`dnsproxy serve` in this process, for the duration of a block, and clients of its DNS and of its admin port."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import dnslib
import trio

from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.program import serve
from dnsproxy.serve.service import Bound
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.sources.static_names import parse_host_flag
from sidecar.values.endpoints import Endpoint
from tests.kit import messages
from tests.kit.dns_server import read_message
from tests.kit.polling import pause
from tests.kit.upstream_replies import framed

LOOPBACK = Endpoint("127.0.0.1", 0)
DEAD = Endpoint("127.0.0.1", 9)


def settings(**changes: object) -> ServeSettings:
    """A server of one name on loopback; it ends without a lame duck period."""
    plain = ServeSettings(
        listen=(LOOPBACK,),
        forwarding=ForwardSettings((DEAD,)),
        targets=Targets(),
        guards=Guards(),
        hosts=(parse_host_flag("app.example.org=192.0.2.10"),),
        admin=LOOPBACK,
        lameduck=0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def serving(wanted: ServeSettings) -> AsyncIterator[Bound]:
    """Serve from the readiness of the sockets to the end of the block."""
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        yield await nursery.start(partial(serve, wanted, stopping=stopping))
        stopping.set()


async def ask(server: Endpoint, name: str) -> bytes:
    """The reply to a query for addresses over UDP."""
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        await client.connect((server.host, server.port))
        await client.send(messages.query(name))
        return await client.recv(4096)


async def ask_stream(server: Endpoint, name: str) -> bytes:
    """The same over a new TCP connection."""
    async with await trio.open_tcp_stream(server.host, server.port) as stream:
        await stream.send_all(framed(messages.query(name)))
        return await read_message(stream)


def addresses_in(reply: bytes) -> list[str]:
    """The addresses of a reply, as parsed by dnslib."""
    return [str(record.rdata) for record in dnslib.DNSRecord.parse(reply).rr]


async def until_answered(server: Endpoint, name: str, *addresses: str) -> None:
    """Ask until these are the addresses; without any, until the name is forwarded. The test's deadline bounds it."""
    while addresses_in(await ask(server, name)) != list(addresses):
        await pause()


async def never_missing(server: Endpoint, name: str, address: str) -> None:
    """Ask until cancelled; each answer is this address."""
    while True:
        assert addresses_in(await ask(server, name)) == [address]
        await trio.sleep(0.002)


async def get(admin: Endpoint | None, path: str) -> tuple[int, str]:
    """The status and the body of a resource of the admin port."""
    assert admin is not None
    async with await trio.open_tcp_stream(admin.host, admin.port) as stream:
        await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        received = b"".join([bytes(chunk) async for chunk in stream])
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()
