"""NOTIFY over real sockets: each secondary is told until it has asked, and a replica of ours refreshes at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dns.message
import dns.opcode
import dns.rcode
import pytest
import trio

from dnsproxy.primary.notifier import Notifier
from dnsproxy.primary.zone_server import ZoneServer
from dnsproxy.zone import notify_book
from dnsproxy.zone.requests import format_notify_reply, format_request, notified_zone
from sidecar.values.endpoints import Endpoint
from tests.kit.dns_server import running, wait_until
from tests.kit.messages import query
from tests.kit.zone_replicas import following
from tests.kit.zone_servers import OPEN, ZonesServed, zones_served
from tests.kit.zone_sides import TABLE_ZONE, ZONE

LINE = "app.example.org 192.0.2.1"


@asynccontextmanager
async def notifying(*targets: Endpoint) -> AsyncIterator[tuple[ZonesServed, Notifier]]:
    async with zones_served(LINE) as served:
        notifier = Notifier(served.primary.zones)
        served.running.server.zones = ZoneServer(served.primary.zones, OPEN, on_served=notifier.served)
        notifier.set_targets("flags", targets)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(notifier.run)
            yield served, notifier
            nursery.cancel_scope.cancel()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PAUSE", 0.01), ("FIRST_RETRY", 0.02), ("LONGEST_RETRY", 0.05)):
        monkeypatch.setattr(notify_book, name, value)


async def receive(sock: trio.socket.SocketType) -> tuple[bytes, bytes, int | None]:
    """A NOTIFY with its zone and serial, as dnspython and we read it."""
    message, _ = await sock.recvfrom(512)
    found = dns.message.from_wire(message)
    assert found.opcode() == dns.opcode.NOTIFY
    zone = notified_zone(message)
    assert zone is not None
    assert found.answer[0][0].serial == zone[1]
    return message, *zone


@pytest.mark.usefixtures("hasty")
async def test_a_secondary_is_told_of_both_zones_until_it_has_asked() -> None:
    with trio.socket.socket(type=trio.socket.SOCK_DGRAM) as sock:
        await sock.bind(("127.0.0.1", 0))
        async with notifying(Endpoint(*sock.getsockname())) as (served, notifier):
            seen = {(await receive(sock))[1:] for _ in range(10)}
            assert seen == {(ZONE, 1), (TABLE_ZONE, 1)}
            await served.running.ask(format_request(ZONE, serial=1, ident=5))
            await wait_until(lambda: notifier.behind == {ZONE: 0, TABLE_ZONE: 1})
            await served.put("more", "more.example.org 192.0.2.2")
            while (await receive(sock))[1:] != (ZONE, 2):
                pass
            assert notifier.behind == {ZONE: 1, TABLE_ZONE: 1}


@pytest.mark.usefixtures("hasty")
async def test_a_secondary_that_refuses_a_zone_is_told_of_the_other_alone() -> None:
    with trio.socket.socket(type=trio.socket.SOCK_DGRAM) as sock:
        await sock.bind(("127.0.0.1", 0))
        async with notifying(Endpoint(*sock.getsockname())) as (_, notifier):
            await wait_until(lambda: notifier.behind[TABLE_ZONE] == 1)
            while notifier.behind[TABLE_ZONE]:
                message, source = await sock.recvfrom(512)
                found = notified_zone(message)
                assert found is not None
                rcode = 9 if found[0] == TABLE_ZONE else 0
                await sock.sendto(b"\0" * 4, source)
                await sock.sendto(message, source)
                await sock.sendto(bytes([message[0] ^ 1]) + format_notify_reply(message, rcode=5)[1:], source)
                await sock.sendto(format_notify_reply(message, rcode=rcode), source)
                await trio.lowlevel.checkpoint()
            # Agreeing is not having: it is told until it asks.
            assert notifier.behind == {ZONE: 1, TABLE_ZONE: 0}


@pytest.mark.usefixtures("hasty")
async def test_of_two_at_one_address_one_that_fetches_does_not_stand_for_the_other() -> None:
    with trio.socket.socket(type=trio.socket.SOCK_DGRAM) as one, trio.socket.socket(type=trio.socket.SOCK_DGRAM) as two:
        for sock in (one, two):
            await sock.bind(("127.0.0.1", 0))
        async with notifying(Endpoint(*one.getsockname()), Endpoint(*two.getsockname())) as (served, notifier):

            async def agree(sock: trio.socket.SocketType) -> None:
                while True:
                    message, source = await sock.recvfrom(512)
                    await sock.sendto(format_notify_reply(message, rcode=0), source)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(agree, one)
                await served.running.ask(format_request(ZONE, serial=1, ident=5))
                await wait_until(lambda: notifier.behind[ZONE] == 1)
                # The other one does not answer: the primary sends it the NOTIFY again and again.
                for _ in range(10):
                    await receive(two)
                assert notifier.behind[ZONE] == 1
                nursery.start_soon(agree, two)
                await wait_until(lambda: notifier.behind[ZONE] == 0)
                nursery.cancel_scope.cancel()


@pytest.mark.usefixtures("hasty")
async def test_places_where_nobody_listens_cost_nobody_else_anything() -> None:
    dead = [Endpoint("127.0.0.1", 9), Endpoint("::1", 9), Endpoint("127.0.0.2", 1)]
    with trio.socket.socket(type=trio.socket.SOCK_DGRAM) as sock:
        await sock.bind(("127.0.0.1", 0))
        async with notifying(*dead, Endpoint(*sock.getsockname())) as (served, notifier):
            for number in range(5):
                await served.put("more", f"more-{number}.example.org 192.0.2.2")
                while (await receive(sock))[1:] != (ZONE, served.primary.serial):
                    pass
            assert served.primary.serial == 6
            assert notifier.behind[ZONE] == 4


async def test_a_replica_has_each_change_at_once_and_is_told_no_more() -> None:
    async with (
        running() as ours,
        notifying(ours.endpoint) as (served, notifier),
        following(served.running.endpoint) as replica,
    ):
        ours.server.answer_notify = replica.replica.notify
        await replica.wait_for(1)
        for number in range(3):
            await served.put("more", f"more-{number}.example.org 192.0.2.{number + 1}")
            await replica.wait_for(number + 2)
            assert replica.addresses(f"more-{number}.example.org") == (f"192.0.2.{number + 1}",)
        await wait_until(lambda: notifier.behind[TABLE_ZONE] == 0)


@pytest.mark.parametrize("stream", [False, True], ids=["UDP", "TCP"])
async def test_a_server_that_is_no_secondary_does_not_know_notify(stream: bool) -> None:
    async with running() as ours:
        message = bytearray(query("rpz.example.org", 6))
        message[2] |= 4 << 3
        ask = ours.ask_stream if stream else ours.ask
        assert dns.message.from_wire(await ask(bytes(message))).rcode() == dns.rcode.NOTIMP
        ours.server.answer_notify = format_notify_reply
        assert dns.message.from_wire(await ask(bytes(message))).rcode() == dns.rcode.NOERROR
        ours.server.answer_notify = lambda _: None
        assert dns.message.from_wire(await ask(bytes(message))).rcode() == dns.rcode.NOTIMP
