"""One query over TCP to upstreams that answer in every way: the reply, or None, in bounded time."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from dnsproxy.forward.stream_client import PER_UPSTREAM, StreamClient
from tests.dnsproxy import upstream_replies as upstream
from tests.dnsproxy.faulty_upstream import (
    Close,
    Part,
    Pause,
    Reset,
    Script,
    faulty_upstream,
    refusing_upstream,
    silence,
)
from tests.dnsproxy.messages import query, scanned
from tests.dnsproxy.running import open_descriptors

ASKED = query("www.example.net")


def without_id(message: bytes | None) -> bytes | None:
    return None if message is None else message[2:]


def in_pieces(asked: bytes) -> list[Part]:
    return [Part(octets.to_bytes(1, "big")) for octets in upstream.framed(upstream.right(asked))]


def cut(asked: bytes) -> list[Part | Close]:
    return [Part(upstream.framed(upstream.right(asked))[:20]), Close()]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_the_reply_comes_back_under_an_id_of_our_own(host: str) -> None:
    async with faulty_upstream(host=host) as server:
        client = StreamClient([server.endpoint])
        replies = [await client.exchange(scanned(ASKED)) for _ in range(20)]
        assert {without_id(reply) for reply in replies} == {upstream.right(ASKED)[2:]}
        assert len({asked.message[:2] for asked in server.asked_streams}) > 15
        assert {asked.message[2:] for asked in server.asked_streams} == {ASKED[2:]}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(in_pieces, upstream.right(ASKED), id="one octet at a time"),
        pytest.param(lambda asked: [upstream.right(asked), Close()], upstream.right(ASKED), id="then FIN"),
        pytest.param(lambda asked: [upstream.right(asked)] * 2, upstream.right(ASKED), id="twice"),
        pytest.param(lambda asked: [upstream.sized(asked, 65_535)], upstream.sized(ASKED, 65_535), id="65,535 octets"),
        pytest.param(
            lambda asked: [upstream.right(asked, rcode=upstream.REFUSED, answers=0)],
            upstream.right(ASKED, rcode=upstream.REFUSED, answers=0),
            id="REFUSED",
        ),
        pytest.param(
            lambda asked: [upstream.header_only(asked, upstream.NOTIMP)],
            upstream.header_only(ASKED, upstream.NOTIMP),
            id="header-only NOTIMP",
        ),
    ],
)
async def test_a_reply_is_taken_whole(script: Script, expected: bytes) -> None:
    async with faulty_upstream(streams=script) as server:
        assert without_id(await StreamClient([server.endpoint]).exchange(scanned(ASKED))) == expected[2:]


FAULTS: list[tuple[str, Script]] = [
    ("FIN before the reply", lambda _: [Close()]),
    ("RST before the reply", lambda _: [Reset()]),
    ("FIN inside the length", lambda _: [Part(b"\0"), Close()]),
    ("FIN inside the reply", cut),
    ("RST inside the reply", lambda asked: [Part(upstream.framed(asked)[:9]), Reset()]),
    ("an empty message", lambda _: [b""]),
    ("one octet", lambda _: [b"x"]),
    ("a wrong ID", lambda asked: [upstream.wrong_id(asked)]),
    ("another question", lambda asked: [upstream.other_question(asked)]),
    ("QR=0", lambda asked: [upstream.without_qr(asked)]),
    ("header-only NOERROR", lambda asked: [upstream.header_only(asked, upstream.NOERROR)]),
    ("silence", silence),
]


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in FAULTS])
async def test_a_fault_is_no_answer_and_the_next_upstream_is_asked(script: Script) -> None:
    async with faulty_upstream(streams=script) as first, faulty_upstream() as second:
        client = StreamClient([first.endpoint, second.endpoint])
        with trio.fail_after(PER_UPSTREAM + 1):
            assert without_id(await client.exchange(scanned(ASKED))) == upstream.right(ASKED)[2:]
        assert len(first.asked_streams) == 1


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in FAULTS if name != "silence"])
async def test_a_fault_of_the_only_upstream_is_none_and_never_an_exception(script: Script) -> None:
    async with faulty_upstream(streams=script) as server:
        assert await StreamClient([server.endpoint]).exchange(scanned(ASKED)) is None


@pytest.mark.parametrize("step", [pytest.param(Close(), id="FIN"), pytest.param(Reset(), id="RST")])
async def test_a_connection_that_is_closed_before_the_query_is_no_answer(step: Close | Reset) -> None:
    async with faulty_upstream() as server:
        server.greeting = [step]
        assert await StreamClient([server.endpoint]).exchange(scanned(ASKED)) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_refused_connection_is_no_answer(host: str) -> None:
    with refusing_upstream(host) as refusing:
        assert await StreamClient([refusing]).exchange(scanned(ASKED)) is None
        async with faulty_upstream() as second:
            client = StreamClient([refusing, second.endpoint])
            assert without_id(await client.exchange(scanned(ASKED))) == upstream.right(ASKED)[2:]


async def test_without_upstreams_there_is_no_answer() -> None:
    assert await StreamClient([]).exchange(scanned(ASKED)) is None


async def test_the_last_upstream_has_all_the_time_that_the_caller_gives() -> None:
    async with faulty_upstream(streams=lambda asked: [Pause(PER_UPSTREAM + 0.1), upstream.right(asked)]) as server:
        with trio.move_on_after(5):
            assert await StreamClient([server.endpoint]).exchange(scanned(ASKED)) is not None
            return
        pytest.fail("the only upstream was not waited for")


async def test_a_cancelled_exchange_leaves_no_descriptor() -> None:
    async with faulty_upstream(streams=silence) as server:
        before = open_descriptors()
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(StreamClient([server.endpoint]).exchange, scanned(ASKED))
            await server.wait_asked(streams=10)
            assert open_descriptors() >= before + 20
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert open_descriptors() == before
