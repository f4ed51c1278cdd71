"""What listeners of the tap see of a server's queries, each way that a query can end."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from dnsproxy.dns.wire import Rcode
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.tap.filters import TapFilter
from dnsproxy.tap.hub import Subscription, Tap
from dnsproxy.tap.seen import Outcome, Seen
from tests.kit.dns_server import OURS, Running, running
from tests.kit.faulty_upstream import answer, faulty_upstream, silence
from tests.kit.messages import AAAA, header, query, question, table_of
from tests.kit.upstream_replies import framed

OTHER = query("www.example.net", ident=0x4321)
TABLE = table_of(f"{OURS} 192.0.2.80", "*.wild.example.org 192.0.2.81")


@asynccontextmanager
async def listening(
    server: Running, wanted: TapFilter | None = None
) -> AsyncIterator[Callable[[int], Awaitable[list[Seen]]]]:
    """A listener; the value takes the next queries."""
    with server.server.tap.subscribe(wanted) as listener:

        async def take(count: int) -> list[Seen]:
            found: list[Seen] = []
            with trio.fail_after(30):
                while len(found) < count:
                    found += await listener.receive(lambda seen: seen)
            return found

        yield take


async def seen_of(server: Running, ask: Callable[[], Awaitable[bytes]]) -> Seen:
    async with listening(server) as take:
        await ask()
        (seen,) = await take(1)
    return seen


@pytest.mark.parametrize(
    ("name", "rule"), [(OURS, OURS), ("APP.example.org", OURS), ("x.wild.example.org", "*.wild.example.org")]
)
async def test_an_answer_of_the_table_is_shown_with_its_row(name: str, rule: str) -> None:
    async with running(table=TABLE) as server:
        asked = query(name, ident=7)
        replies: list[bytes] = []
        async with server.client() as client, listening(server) as take:
            await client.send(asked)
            replies.append(await client.recv(4096))
            (seen,) = await take(1)
            assert seen.port == client.getsockname()[1]
        assert (seen.outcome, seen.rule, seen.query, seen.reply) == (Outcome.TABLE, rule, asked, replies[0])
        assert (seen.client, seen.datagram, seen.exchange) == ("127.0.0.1", True, None)
        assert 0 < seen.seconds < 5


async def test_answers_that_need_a_decision_are_shown_too() -> None:
    """NODATA, with a flag that no recipe has, beside a plain query of the same batch."""
    async with running(table=TABLE) as server, listening(server) as take, server.client() as client:
        await client.send(query(OURS, flags=0x0100, ident=1))
        await client.send(query(OURS, AAAA, flags=0x0510, ident=2))
        first, second = await take(2)
    assert {first.outcome, second.outcome} == {Outcome.TABLE}
    assert sorted((first.query[:2], second.query[:2])) == [b"\0\1", b"\0\2"]


async def test_a_query_over_tcp_is_shown_with_the_port_of_its_client() -> None:
    async with running(table=TABLE) as server, listening(server) as take, await server.connect() as stream:
        await stream.send_all(framed(query(OURS)))
        (seen,) = await take(1)
        assert (seen.datagram, seen.client, seen.port) == (False, "127.0.0.1", stream.socket.getsockname()[1])
    assert (seen.outcome, seen.rule) == (Outcome.TABLE, OURS)


async def test_a_forwarded_query_is_shown_with_both_exchanges() -> None:
    async with faulty_upstream(answer) as upstream, running(upstream.endpoint, table=TABLE) as server:
        seen = await seen_of(server, lambda: server.ask(OTHER))
        (asked,) = upstream.asked_datagrams
    exchange = seen.exchange
    assert exchange is not None
    assert (seen.outcome, seen.query, seen.rule) == (Outcome.UPSTREAM, OTHER, "")
    assert (exchange.upstream, exchange.datagram) == (str(upstream.endpoint), True)
    assert (exchange.query, exchange.reply[:2]) == (asked.message, asked.message[:2])
    assert seen.reply == OTHER[:2] + exchange.reply[2:]
    assert 0 < exchange.seconds <= seen.seconds < 5


async def test_a_forwarded_query_over_tcp_is_shown_with_both_exchanges() -> None:
    async with faulty_upstream(answer) as upstream, running(upstream.endpoint, table=TABLE) as server:
        seen = await seen_of(server, lambda: server.ask_stream(OTHER))
        (asked,) = upstream.asked_streams
    assert seen.exchange is not None
    assert (seen.exchange.datagram, seen.exchange.query) == (False, asked.message)
    assert (seen.outcome, seen.datagram) == (Outcome.UPSTREAM, False)


async def test_equal_queries_that_share_a_reply_are_all_shown_and_one_has_the_exchange() -> None:
    async with (
        faulty_upstream(silence, answer) as upstream,
        running(upstream.endpoint, table=TABLE) as server,
        listening(server) as take,
        server.client() as first,
        server.client() as second,
    ):
        await first.send(OTHER)
        await upstream.wait_asked(datagrams=1)
        await second.send(b"\7\7" + OTHER[2:])
        shown = await take(2)
        ports = {first.getsockname()[1], second.getsockname()[1]}
    assert {one.port for one in shown} == ports
    assert sorted(one.query[:2] for one in shown) == [b"\7\7", OTHER[:2]]
    assert all(one.reply[:2] == one.query[:2] for one in shown)
    exchanges = [one.exchange for one in shown if one.exchange]
    assert [one.upstream for one in exchanges] == [str(upstream.endpoint)] * 2
    assert [bool(one.query) for one in exchanges].count(True) == 1


async def test_a_query_without_an_answer_is_shown_as_failed() -> None:
    async with faulty_upstream(silence, silence) as upstream, running(upstream.endpoint, table=TABLE) as server:
        for ask in (server.ask, server.ask_stream):
            seen = await seen_of(server, partial(ask, OTHER))
            assert (seen.outcome, seen.exchange, seen.reply[3] & 15) == (Outcome.FAILED, None, Rcode.SERVFAIL)
        # The failure is remembered: the next one fails at once, and is shown as well.
        seen = await seen_of(server, lambda: server.ask(OTHER))
        assert (seen.outcome, seen.reply[3] & 15) == (Outcome.FAILED, Rcode.SERVFAIL)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(header(0x2000) + question(OURS), id="an opcode"),
        pytest.param(header(counts=(2, 0, 0, 0)) + question(OURS), id="malformed"),
    ],
)
async def test_a_refused_query_is_shown(message: bytes) -> None:
    async with running(table=TABLE) as server:
        for ask in (server.ask, server.ask_stream):
            seen = await seen_of(server, partial(ask, message))
            assert (seen.outcome, seen.query) == (Outcome.REFUSED, message)


async def test_a_query_beyond_the_limits_is_shown_as_refused() -> None:
    settings = ForwardSettings((), detect_loops=False, outstanding=1)
    async with (
        faulty_upstream(silence, silence) as upstream,
        running(upstream.endpoint, table=TABLE, forwarding=settings) as server,
        server.client() as client,
        listening(server, TapFilter(outcomes=("refused",))) as take,
    ):
        await client.send(OTHER)
        await client.send(query("other.example.net"))
        (seen,) = await take(1)
    assert seen.reply[3] & 15 == Rcode.REFUSED


@pytest.mark.parametrize(
    "message", [pytest.param(b"\0" * 5, id="short"), pytest.param(header(0x8000), id="a response")]
)
async def test_a_dropped_query_is_shown(message: bytes) -> None:
    async with running(table=TABLE) as server, listening(server) as take, server.client() as client:
        await client.send(message)
        (seen,) = await take(1)
    assert (seen.outcome, seen.query, seen.reply) == (Outcome.DROPPED, message, b"")


async def test_a_filter_shows_one_name_only() -> None:
    wanted = TapFilter(names=("*.wild.example.org",), types=(AAAA,))
    async with running(table=TABLE) as server, listening(server, wanted) as take:
        await server.ask(query(OURS, AAAA))
        await server.ask(query("a.wild.example.org"))
        await server.ask(query("b.wild.example.org", AAAA))
        (seen,) = await take(1)
    assert seen.query == query("b.wild.example.org", AAAA)


async def test_a_bug_in_the_tap_costs_no_client_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    for name in ("offer_batch", "offer"):
        monkeypatch.setattr(Subscription, name, fail)
    async with faulty_upstream(answer) as upstream, running(upstream.endpoint, table=TABLE) as server:
        with server.server.tap.subscribe():
            for message in (query(OURS), query(OURS, 16, flags=0x0510), OTHER, header(0x2000) + question(OURS)):
                assert await server.ask(message)
                assert await server.ask_stream(message)
            assert server.server.counters.failures == 0


async def test_without_a_listener_nothing_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("noted")

    for name in ("note", "note_batch"):
        monkeypatch.setattr(Tap, name, fail)
    async with faulty_upstream(answer) as upstream, running(upstream.endpoint, table=TABLE) as server:
        for message in (query(OURS), OTHER):
            assert await server.ask(message)
            assert await server.ask_stream(message)
