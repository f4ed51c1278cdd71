"""Many secondaries, slow ones, and such as read nothing: each is bounded, and all others are served meanwhile."""

from __future__ import annotations

import socket
from typing import Final

import dns.zone
import pytest
import trio

from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.zone.requests import format_request
from tests.kit.dns_server import read_message, wait_until
from tests.kit.messages import query
from tests.kit.upstream_replies import framed
from tests.kit.zone_servers import POLICY, ZonesServed, zones_served
from tests.kit.zone_sides import TABLE_ZONE

LINES: Final = tuple(f"n{number}.example.org 192.0.2.{number % 250 + 1}" for number in range(6_000))
AXFR: Final = framed(format_request(TABLE_ZONE, serial=None, ident=1))


async def connect(served: ZonesServed) -> trio.SocketStream:
    """A client with small buffers."""
    sock = trio.socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await sock.connect(("127.0.0.1", served.port))
    return trio.SocketStream(sock)


async def read_whole(stream: trio.SocketStream) -> int:
    """The octets of a transfer; ends after the second SOA, whose record ends in the message."""
    octets = soas = 0
    while soas < 2:
        message = await read_message(stream)
        assert message, "the connection ended"
        octets += len(message)
        soas += message.count(b"\x09localhost\0\x06nobody\x07invalid\0")
    return octets


async def test_a_secondary_that_reads_nothing_is_cut_off_and_others_are_served_meanwhile() -> None:
    async with zones_served(*LINES, limits=StreamLimits(send=1.0)) as served:
        # More than there are places to make messages in.
        idle = [await connect(served) for _ in range(8)]
        for stream in idle:
            await stream.send_all(AXFR)
        async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
            await stream.send_all(AXFR)
            assert await read_whole(stream) > 100 * len(LINES)
        assert await served.running.ask(query("n1.example.org"))
        await wait_until(lambda: not served.running.server._streams._connections)
        assert served.primary.server.transfers["axfr"] == 1, "no other one was accepted whole"
        for stream in idle:
            await stream.aclose()


async def test_a_slow_secondary_gets_one_version_whole_while_others_come() -> None:
    async with zones_served(*LINES) as served, await connect(served) as slow:
        await slow.send_all(AXFR)
        first = await read_message(slow)
        for number in range(3):
            await served.put("more", f"more-{number}.example.org 192.0.2.9")
        rest = b""
        while rest.count(b"\x09localhost\0\x06nobody") < 1:
            rest += await read_message(slow)
        serials = [part[11:15] for part in (first + rest).split(b"\x06nobody\x07invalid\0")[1:]]
        assert b"more-" not in first + rest
        assert len(serials) == 2
        assert served.primary.serial == 4


async def test_many_secondaries_at_one_time_all_get_the_zone() -> None:
    sizes = []
    async with zones_served(*LINES[:500]) as served:

        async def follow() -> None:
            async with await connect(served) as stream:
                for _ in range(2):
                    await stream.send_all(AXFR)
                    sizes.append(await read_whole(stream))

        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(follow)
        await served.wait_for_transfers(axfr=120)
    assert len(sizes) == 120
    assert len(set(sizes)) == 1


@pytest.mark.parametrize("requests", [2, 30])
async def test_transfers_on_one_connection_are_all_answered(requests: int) -> None:
    async with zones_served(*LINES[:50]) as served, await connect(served) as stream:
        for ident in range(requests):
            await stream.send_all(framed(format_request(TABLE_ZONE, serial=None, ident=ident)))
        found = [(await read_message(stream))[:2] for _ in range(requests)]
        assert sorted(found) == [ident.to_bytes(2, "big") for ident in range(requests)]


async def test_a_client_that_leaves_amid_a_transfer_costs_nobody_anything() -> None:
    async with zones_served(*LINES) as served:
        for _ in range(20):
            async with await connect(served) as stream:
                await stream.send_all(AXFR)
                await stream.receive_some(100)
        await wait_until(lambda: not served.running.server._streams._connections)
        await served.transfer(dns.zone.Zone(POLICY))
        await served.wait_for_transfers(axfr=1)
        assert served.running.server.counters.failures == 0
