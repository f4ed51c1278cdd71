"""Servers that close a connection early: after one reply, after some, or because of one query of many."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import ssl
from collections import Counter

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.forward.deadlines import GIVE_UP
from dnsproxy.forward.pipeline import _ALONE, _TRIES
from tests.dnsproxy.forward.pipelines import ASKED, RIGHT, serving, several
from tests.kit import upstream_replies as upstream
from tests.kit.faulty_upstream import Close, FaultyUpstream, Pause, Reset, Script, Step, answer, silence


def answering(server: FaultyUpstream, number: int, *, end: Step, seconds: float = 0.0) -> Script:
    """A server that answers so many queries of a connection, each after some seconds, and then ends it."""
    turns: Counter[tuple[str, int]] = Counter()

    def script(asked: bytes) -> list[Step]:
        source = server.asked_streams[-1].source
        turns[source] += 1
        if turns[source] > number:
            return []
        return [Pause(seconds), upstream.right(asked), *([end] if turns[source] == number else [])]

    return script


every_end = pytest.mark.parametrize("end", [pytest.param(Close(), id="FIN"), pytest.param(Reset(), id="RST")])


def right(*messages: bytes) -> list[bytes | None]:
    return [upstream.right(message)[2:] for message in messages]


@every_end
@pytest.mark.parametrize("number", [1, 2, 3, 7])
async def test_all_queries_are_answered_by_a_server_that_answers_so_many_per_connection(
    clock: MockClock, secured: ssl.SSLContext | None, number: int, end: Step
) -> None:
    """RFC 7766 section 6.2.3: a server may close a connection at any time; NSD does with `tcp-query-count`."""
    for at_once in (2, 9, 50):
        async with serving(silence, secured) as (server, client):
            server.streams = answering(server, number, end=end)
            asked = several(at_once)
            assert await client.ask_all(*asked) == right(*asked)
            # No dial storm: not much more than one connection for each group that the server answers.
            assert server.connections <= 2 + -(-at_once // number)


async def test_a_server_that_answers_one_query_a_connection_is_asked_on_several_at_a_time(clock: MockClock) -> None:
    async with serving(silence, None) as (server, client):
        server.streams = answering(server, 1, end=Close(), seconds=0.1)
        asked = several(100)
        began = trio.current_time()
        assert await client.ask_all(*asked) == right(*asked)
        # Two connections teach it; then 16 at a time.
        assert trio.current_time() - began < 0.1 * (2 + 100 / _ALONE + 1) + 0.1
        at = sorted(one.at for one in server.asked_streams[200:])
        assert all(later - earlier > 0.05 for earlier, later in zip(at, at[_ALONE:], strict=False))


async def test_a_server_known_for_one_query_gets_each_on_its_own_connection_for_a_while(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dnsproxy.forward.pipeline.LEARNED", 20.0)
    async with serving(silence, None) as (server, client):
        server.streams = answering(server, 1, end=Close())
        await client.ask_all(*several(10))
        server.streams = answer
        before = server.connections
        assert await client.ask_all(*several(5)) == right(*several(5))
        assert server.connections == before + 5
        await trio.sleep(20.0)
        before = server.connections
        assert await client.ask_all(*several(5)) == right(*several(5))
        assert server.connections == before + 1


async def test_a_connection_that_ends_after_one_reply_once_teaches_nothing(clock: MockClock) -> None:
    """A server that restarts has done so too."""
    async with serving(silence, None) as (server, client):
        server.streams = answering(server, 1, end=Close())
        assert await client.ask_all(*several(2)) == right(*several(2))
        server.streams = answer
        await client.ask_all(*several(5))
        before = server.connections
        assert await client.ask_all(*several(5)) == right(*several(5))
        assert server.connections == before


async def test_a_query_that_ends_its_connection_does_not_end_those_of_others(
    clock: MockClock, secured: ssl.SSLContext | None
) -> None:
    """Some servers and middleboxes reset a connection because of one query that they do not like."""

    def script(asked: bytes) -> list[Step]:
        return [Reset()] if asked[2:] == ASKED[2:] else [Pause(0.05), upstream.right(asked)]

    async with serving(script, secured) as (server, client):
        others = several(20)
        assert await client.ask_all(ASKED, *others) == [None, *right(*others)]
        server.streams = answer
        assert await client.ask() == RIGHT


@pytest.mark.parametrize("end", [Close(), Reset()], ids=["FIN", "RST"])
async def test_a_server_that_answers_nobody_is_dialled_few_times(clock: MockClock, end: Step) -> None:
    async with serving(lambda _: [end], None) as (server, client):
        began = trio.current_time()
        assert set(await client.ask_all(*several(200))) == {None}
        assert trio.current_time() - began < GIVE_UP
        assert server.connections <= 1 + 2 * _ALONE


async def test_a_query_without_a_reply_is_asked_a_limited_number_of_times_while_others_are_answered(
    clock: MockClock,
) -> None:
    async with serving(silence, None) as (server, client), trio.open_nursery() as nursery:
        server.streams = answering(server, 1, end=Close())
        await client.ask_all(*several(10))

        def script(asked: bytes) -> list[Step]:
            return [Close()] if asked[2:] == ASKED[2:] else [upstream.right(asked), Close()]

        server.streams = script

        async def load() -> None:
            while True:
                await client.ask(several(1)[0])

        nursery.start_soon(load)
        before = len(server.asked_streams)
        assert await client.ask() is None
        asked = [one.message[2:] for one in server.asked_streams[before:]]
        assert asked.count(ASKED[2:]) <= _TRIES
        nursery.cancel_scope.cancel()


async def test_slow_queries_of_a_server_known_for_one_query_hold_up_others_no_longer_than_a_turn(
    clock: MockClock,
) -> None:
    async with serving(silence, None) as (server, client):
        server.streams = answering(server, 1, end=Close())
        await client.ask_all(*several(10))

        def script(asked: bytes) -> list[Step]:
            return [] if asked[2:] == ASKED[2:] else [upstream.right(asked), Close()]

        server.streams = script
        others = several(50)
        found = await client.ask_all(*[ASKED] * (_ALONE - 1), *others)
        assert found == [None] * (_ALONE - 1) + right(*others)
