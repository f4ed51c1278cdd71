"""A connection on which no reply arrives: it is replaced, while a connection of a busy server stays."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import ssl
from collections.abc import Iterable
from functools import partial

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.forward.deadlines import GIVE_UP, SILENT, SUSPECT
from dnsproxy.forward.flight import FAILING
from tests.dnsproxy.forward.pipelines import ASKED, RIGHT, Asking, serving, several
from tests.kit import upstream_replies as upstream
from tests.kit.faulty_upstream import FaultyUpstream, Part, Pause, Script, Step, answer, silence

EVERY = 0.05
"""Seconds between two queries of a steady load: 20 a second."""


class Steady:
    """Queries at a steady rate, and the number of seconds that each reply took; None without a reply."""

    def __init__(self, client: Asking) -> None:
        self.client = client
        self.seconds: list[float | None] = []

    async def run(self, number: int) -> None:
        async with trio.open_nursery() as nursery:
            for message in several(number):
                nursery.start_soon(self._ask, message)
                await trio.sleep(EVERY)

    async def _ask(self, message: bytes) -> None:
        began = trio.current_time()
        reply = await self.client.ask(message)
        assert reply in (None, upstream.right(message)[2:])
        self.seconds.append(None if reply is None else trio.current_time() - began)


def lost(server: FaultyUpstream) -> Script:
    """The connections that have asked so far lose their path; others are answered."""
    without_path = {asked.source for asked in server.asked_streams}
    return lambda asked: [] if server.asked_streams[-1].source in without_path else [upstream.right(asked)]


async def test_queries_on_a_connection_that_lost_its_path_are_answered_on_a_fresh_one(
    clock: MockClock, secured: ssl.SSLContext | None
) -> None:
    """A NAT or a firewall that forgets a connection drops its segments; the kernel sends them again for minutes."""
    with capture_logs() as logs:
        async with serving(answer, secured) as (server, client):
            steady = Steady(client)
            await steady.run(20)
            server.streams = lost(server)
            await steady.run(80)
            assert None not in steady.seconds
            assert max(filter(None, steady.seconds)) < SUSPECT + 0.2
            assert server.connections == 2
            assert not client.pipeline.health.misses
    assert [line["log_level"] for line in logs] == ["warning", "info"]
    assert "silent" in logs[0]["event"]


async def test_a_lone_query_is_answered_on_a_fresh_connection_within_its_deadline(clock: MockClock) -> None:
    async with serving(answer, None) as (server, client):
        assert await client.ask() == RIGHT
        server.streams = lost(server)
        assert await client.ask() == RIGHT
        assert server.connections == 2


async def test_a_fresh_connection_that_is_silent_too_is_replaced_at_the_deadline_of_a_query(clock: MockClock) -> None:
    """A hung server behind a balancer: another connection may reach another server."""
    async with serving(silence, None) as (server, client):
        assert await client.ask_all(*several(20)) == [None] * 20
        server.streams = lost(server)
        assert await client.ask() == RIGHT
        assert server.connections == 2


async def test_queries_with_time_left_are_asked_again_when_their_connection_is_closed(clock: MockClock) -> None:
    async with serving(silence, None) as (server, client), trio.open_nursery() as nursery:
        nursery.start_soon(client.ask)
        await server.wait_asked(streams=1)
        await trio.sleep(1.0)
        server.streams = lost(server)
        later = several(5)
        assert await client.ask_all(*later) == [upstream.right(message)[2:] for message in later]
        assert server.connections == 2


async def test_a_server_that_stays_silent_is_dialled_rarely_and_logged_once(
    clock: MockClock, secured: ssl.SSLContext | None
) -> None:
    with capture_logs() as logs:
        async with serving(answer, secured) as (server, client):
            assert await client.ask() == RIGHT
            server.streams = silence
            steady, seconds = Steady(client), 9
            await steady.run(int(seconds / EVERY))
            assert set(steady.seconds) == {None}
            assert server.connections <= 3 + seconds / SILENT
            assert client.pipeline.health.misses >= FAILING
            server.streams = answer
            await trio.sleep(SILENT)
            assert await client.ask() == RIGHT
            assert not client.pipeline.health.misses
    assert [line["log_level"] for line in logs] == ["warning", "info"]


def slow(message: bytes, seconds: float) -> Script:
    """A healthy server that needs so long for this query, and answers others meanwhile."""
    return lambda asked: [*([Pause(seconds)] if asked[2:] == message[2:] else []), upstream.right(asked)]


async def test_a_busy_server_that_leaves_one_query_unanswered_keeps_its_connection(
    clock: MockClock, secured: ssl.SSLContext | None
) -> None:
    with capture_logs() as logs:
        async with serving(slow(ASKED, 60.0), secured) as (server, client), trio.open_nursery() as nursery:
            await client.ask(several(1)[0])
            steady = Steady(client)
            nursery.start_soon(steady.run, 50)
            assert await client.ask() is None
        assert None not in steady.seconds
        assert server.connections == 1
        assert [asked.message[2:] for asked in server.asked_streams].count(ASKED[2:]) == 1
        assert not client.pipeline.health.misses
    assert logs == []


async def test_a_slow_reply_on_the_first_connection_still_counts_and_clears_it(clock: MockClock) -> None:
    """A server that needs a second for one name is suspect when nothing else is asked, and loses nothing by it."""
    async with serving(slow(ASKED, 1.0), None) as (server, client):
        other = several(1)[0]
        await client.ask(other)
        began = trio.current_time()
        assert await client.ask() == RIGHT
        assert trio.current_time() - began < 1.1
        assert server.connections == 2
        for _ in range(5):
            assert await client.ask(other) == upstream.right(other)[2:]
        assert server.connections == 2
        assert not any(connection.suspect for connection in client.pipeline._connections)


async def test_the_first_connection_is_waited_for_if_no_other_opens(clock: MockClock) -> None:
    async with serving(slow(ASKED, 1.0), None) as (server, client):
        await client.ask(several(1)[0])
        server.greeting = [Pause(60.0)]
        assert await client.ask() == RIGHT


async def test_a_query_whose_client_left_is_a_witness_of_silence_all_the_same(clock: MockClock) -> None:
    async with serving(answer, None) as (server, client):
        assert await client.ask() == RIGHT
        server.streams = lost(server)
        assert await client.ask(timeout=0.1) is None
        await trio.sleep(SUSPECT)
        began = trio.current_time()
        assert await client.ask() == RIGHT
        assert trio.current_time() - began < 0.1


async def test_a_server_that_takes_turns_between_replies_and_silence_stays_bounded(clock: MockClock) -> None:
    turns = iter(range(10**6))

    def script(asked: bytes) -> list[Step]:
        return [upstream.right(asked)] if next(turns) % 40 < 10 else []

    async with serving(script, None) as (server, client):
        steady, seconds = Steady(client), 9
        await steady.run(int(seconds / EVERY))
        assert server.connections <= 2 + seconds / SUSPECT
        assert len(client.pipeline._connections) <= 2 + SILENT / SUSPECT
        server.streams = answer
        await trio.sleep(GIVE_UP)
        assert await client.ask() == RIGHT


@pytest.mark.parametrize("served", [pytest.param(3, id="a connection that served"), pytest.param(0, id="a fresh one")])
@pytest.mark.parametrize(
    "spoiled",
    [
        pytest.param(lambda asked: [Part(b"\xff\xff"), upstream.right(asked)], id="a length that swallows replies"),
        pytest.param(lambda asked: [Part(b"\0\5"), upstream.right(asked)], id="a length that is too small"),
        pytest.param(lambda asked: [Part(b"\0"), upstream.right(asked)], id="an octet too many"),
        pytest.param(lambda asked: [upstream.wrong_id(asked)], id="wrong IDs"),
        pytest.param(lambda asked: [upstream.other_question(asked)], id="other questions"),
        pytest.param(lambda asked: [upstream.without_qr(asked)], id="the queries themselves"),
    ],
)
async def test_octets_that_are_no_reply_keep_no_connection(clock: MockClock, served: int, spoiled: Script) -> None:
    """One wrong length, and a stream stays out of step: its server still sends, and no query would get a reply."""

    def script(asked: bytes) -> Iterable[Step]:
        spoils = server.connections == 1 and len(server.asked_streams) > served
        return spoiled(asked) if spoils else [upstream.right(asked)]

    async with serving(script, None) as (server, client):
        steady = Steady(client)
        await steady.run(80)
        assert server.connections == 2
        assert steady.seconds.count(None) <= (0 if served else SILENT / EVERY)
        assert None not in steady.seconds[-40:]
        assert not client.pipeline.health.misses


async def test_a_late_reply_to_a_query_whose_client_left_shows_that_the_connection_is_sound(clock: MockClock) -> None:
    async with serving(slow(ASKED, SUSPECT / 2), None) as (server, client):
        (other,) = several(1)
        assert await client.ask(other) is not None
        assert await client.ask(timeout=SUSPECT / 4) is None
        await trio.sleep(SILENT)
        assert await client.ask(other) is not None
        assert server.connections == 1
        assert not client.pipeline.health.misses


async def test_queries_that_were_given_up_are_remembered_up_to_a_bound(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dnsproxy.forward.connection._LATE", 5)
    async with serving(silence, None) as (_, client), trio.open_nursery() as nursery:
        for message in several(20):
            nursery.start_soon(partial(client.ask, message, timeout=0.1))
        await trio.sleep(0.2)
        (connection,) = client.pipeline._connections
        assert len(connection._late) == 5
        assert not connection._waiting
