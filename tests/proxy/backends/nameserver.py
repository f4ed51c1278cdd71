"""A nameserver that a test plays on loopback, over UDP and TCP."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import trio

from proxy.backends.name_resolver import NameResolver
from sidecar.sockets.listeners import bound_endpoint, listen_both
from sidecar.values.endpoints import Endpoint

Records = list[tuple[str, int, str, list[str]]]
"""Rows of an answer section: name, TTL, type, texts."""


class PlayedNameserver:
    """Answers by name and type: NXDOMAIN without an entry, no answer for None, a text is an rcode."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: dict[tuple[str, str], Records | str | None] = {}
        self.truncates = False
        self.asked: Counter[tuple[str, str]] = Counter()

    def put(self, name: str, kind: str, texts: list[str], *, ttl: int = 60) -> None:
        """Set the records of one name; without records, NODATA."""
        self.answers[name, kind] = [(name, ttl, kind, texts)] if texts else []

    def reply(self, message: bytes, *, stream: bool) -> bytes | None:
        query = dns.message.from_wire(message)
        question = query.question[0]
        key = (question.name.to_text(), question.rdtype.name)
        self.asked[key] += 1
        answer = self.answers.get(key, "NXDOMAIN")
        if answer is None:
            return None
        reply = dns.message.make_response(query)
        if isinstance(answer, str):
            reply.set_rcode(dns.rcode.from_text(answer))
        elif self.truncates and not stream:
            reply.flags |= dns.flags.TC
        else:
            reply.answer = [dns.rrset.from_text(name, ttl, "IN", kind, *texts) for name, ttl, kind, texts in answer]
        return reply.to_wire()

    async def serve_datagrams(self, sock: trio.socket.SocketType) -> None:
        while True:
            message, client = await sock.recvfrom(4096)
            reply = self.reply(message, stream=False)
            if reply is not None:
                await sock.sendto(reply, client)

    async def serve_stream(self, stream: trio.SocketStream) -> None:
        async with stream:
            octets = await stream.receive_some(4096)
            reply = self.reply(bytes(octets[2:]), stream=True)
            if reply is not None:
                await stream.send_all(len(reply).to_bytes(2) + reply)


@asynccontextmanager
async def played_nameserver(
    folder: Path, *, hosts: str = "", conf: str = ""
) -> AsyncIterator[tuple[PlayedNameserver, NameResolver]]:
    """The nameserver, and a resolver that queries it; `conf` adds lines to its resolv.conf."""
    (folder / "resolv.conf").write_text(f"nameserver 127.0.0.1\n{conf}")
    (folder / "hosts").write_text(hosts)
    tcp, udp = listen_both(Endpoint("127.0.0.1", 0), flag="test")
    port = bound_endpoint(udp).port
    server = PlayedNameserver(port)
    with trio.socket.from_stdlib_socket(udp) as datagrams:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(tcp))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve_datagrams, datagrams)
            nursery.start_soon(trio.serve_listeners, server.serve_stream, [listener])
            yield server, NameResolver(folder / "resolv.conf", folder / "hosts", port=port)
            nursery.cancel_scope.cancel()
