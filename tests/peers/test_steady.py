"""The steady questions count what became of them, and nothing that became of another's."""

from __future__ import annotations

import socket

import pytest
import trio

from tests.kit.messages import query, record, reply_to
from tests.peers.steady import asking

ANSWERED = "192.0.2.7"


@pytest.mark.parametrize("other", [query("h2.apps.example.org", ident=7), query("1.2", 13)], ids=["ID", "name"])
async def test_a_late_reply_to_an_earlier_owner_of_the_port_is_not_counted(other: bytes) -> None:
    async def answer(server: trio.socket.SocketType) -> None:
        while True:
            message, client = await server.recvfrom(512)
            await server.sendto(reply_to(other, flags=0x8185), client)
            right = reply_to(message, records=record(1, socket.inet_aton(ANSWERED)), answers=1)
            await server.sendto(right, client)

    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        await server.bind(("127.0.0.1", 0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, server)
            async with asking(server.getsockname()[1]) as tally:
                await tally.wait_for(1, lambda outcome: outcome.transport == "UDP")
            nursery.cancel_scope.cancel()
    assert {outcome.said for outcome in tally.outcomes if outcome.transport == "UDP"} == {ANSWERED}
