"""One request, and no more of the response than its status line."""

from __future__ import annotations

import trio
from trio.testing import memory_stream_pair

from dnsproxy.doctor.collect.http_exchange import exchange
from dnsproxy.doctor.collect.reaction import Reaction
from dnsproxy.doctor.facts.probes import Outcome

HOST = "app.example.org"


async def test_the_request_asks_for_the_host_and_an_end() -> None:
    client, server = memory_stream_pair()
    await server.send_all(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert await exchange(client, HOST, seconds=30) == Reaction(Outcome.ANSWERED, "204 No Content", 204)
    request = bytes(await server.receive_some())
    line, *headers = request.removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert line == b"GET / HTTP/1.1"
    assert headers == [b"Host: app.example.org", b"User-Agent: switchback-doctor", b"Connection: close"]


async def test_a_response_in_single_bytes_is_read() -> None:
    client, server = memory_stream_pair()

    async def respond() -> None:
        for octet in b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Service Unavailable\r\nX: y\r\n\r\n":
            await server.send_all(bytes([octet]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(respond)
        found = await exchange(client, HOST, seconds=30)
    assert found == Reaction(Outcome.ANSWERED, "503 Service Unavailable", 503)


async def test_an_endless_response_is_left() -> None:
    client, server = memory_stream_pair()
    sent = 0

    async def respond() -> None:
        nonlocal sent
        await server.send_all(b"HTTP/1.1 103 Early Hints\r\n")
        while True:
            await server.send_all(b"Link: </style.css>\r\n")
            sent += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(respond)
        found = await exchange(client, HOST, seconds=30)
        nursery.cancel_scope.cancel()
    assert found == Reaction(Outcome.ANSWERED, "103 Early Hints")
    assert sent * 20 < 2**15


async def test_a_slow_response_ends_in_time(autojump_clock: object) -> None:  # noqa: ARG001
    client, server = memory_stream_pair()

    async def respond() -> None:
        for octet in b"HTTP/1.1 200 OK\r\n\r\n":
            await server.send_all(bytes([octet]))
            await trio.sleep(1)

    before = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(respond)
        found = await exchange(client, HOST, seconds=3.5)
        nursery.cancel_scope.cancel()
    assert found == Reaction(Outcome.SILENT, "nothing within 3.5 s but 'HTTP'")
    assert trio.current_time() - before == 3.5
