"""Forwarding on real sockets to an upstream with every fault: what the client gets, and what is left."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.dns.wire import Rcode
from dnsproxy.forward import replies
from dnsproxy.forward.deadlines import GIVE_UP, RETRY, TICK
from dnsproxy.forward.flight import Flight
from sidecar.values.endpoints import Endpoint
from tests.kit import upstream_replies as upstream
from tests.kit.dns_server import TRUSTING, Running, running, wait_until
from tests.kit.faulty_upstream import (
    Close,
    Elsewhere,
    Pause,
    Reset,
    Script,
    Step,
    Until,
    answer,
    faulty_upstream,
    refusing_upstream,
    silence,
)
from tests.kit.messages import MX, NS, TXT, extended_error, opt_record, query, read_dnspython

ASKED = query("www.example.net")
ASKED_EDNS = query("www.example.net", additional=(opt_record(),))
COREDNS_SECONDS = 2.0
"""CoreDNS's forward plugin waits this long, and then counts this server as failed."""
_NO_REACHABLE_AUTHORITY, _NETWORK_ERROR = 22, 23


async def assert_nothing_is_left(world: Running) -> None:
    await wait_until(lambda: len(world.forwarder) == 0)
    assert world.waiting == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(ASKED, id="plain"),
        pytest.param(ASKED_EDNS, id="EDNS"),
        pytest.param(query("wWw.ExAmPlE.nEt", flags=0x0130), id="mixed case, AD and CD"),
        pytest.param(query("www.example.net", 65280), id="unknown type"),
        pytest.param(query("\x00\xff.example.net"), id="octets that are no text"),
        pytest.param(query("app.example.org", MX), id="another type of a name of ours"),
    ],
)
async def test_query_and_reply_pass_octet_for_octet_but_for_the_id(host: str, asked: bytes) -> None:
    async with faulty_upstream(host=host) as server, running(server.endpoint) as world:
        reply = await world.ask(asked)
        assert server.asked_datagrams[0].message[2:] == asked[2:]
        assert reply == upstream.right(asked)
        await assert_nothing_is_left(world)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(lambda asked: upstream.right(asked, answers=0), id="empty NOERROR"),
        pytest.param(lambda asked: upstream.right(asked, rcode=3), id="NXDOMAIN with an answer"),
        pytest.param(lambda asked: upstream.right(asked, flags=0x0470), id="flags that mean nothing"),
        pytest.param(upstream.truncated, id="TC"),
        pytest.param(lambda asked: upstream.sized(asked, 512), id="512 octets"),
        pytest.param(lambda asked: upstream.right(asked) + b"tail", id="octets behind the message"),
    ],
)
async def test_every_reply_of_an_upstream_passes_unchanged_and_is_a_sign_of_life(
    reply: Callable[[bytes], bytes],
) -> None:
    async with faulty_upstream(lambda asked: [reply(asked)]) as server, running(server.endpoint) as world:
        for _ in range(3):
            assert await world.ask(ASKED) == reply(ASKED)
        assert not world.forwarder.upstreams.used[0].health.misses
        assert world.server.counters.upstream_by_rcode[upstream.rcode_of(reply(ASKED))] == 3


async def test_a_reply_of_every_code_passes_unchanged_and_is_a_sign_of_life() -> None:
    rcode = 0
    async with (
        faulty_upstream(lambda asked: [upstream.right(asked, rcode=rcode, answers=0)]) as server,
        running(server.endpoint) as world,
    ):
        for rcode in range(16):
            for _ in range(3):
                assert await world.ask(ASKED) == upstream.right(ASKED, rcode=rcode, answers=0)
            assert not world.forwarder.upstreams.used[0].health.misses
            assert world.server.counters.upstream_by_rcode[rcode] == 3


@pytest.mark.parametrize(
    "rcode",
    [upstream.FORMERR, upstream.SERVFAIL, upstream.NOTIMP, upstream.REFUSED],
    ids=lambda rcode: f"rcode {rcode}",
)
@pytest.mark.parametrize("asked", [pytest.param(ASKED, id="plain"), pytest.param(ASKED_EDNS, id="EDNS")])
async def test_an_error_without_a_question_gets_the_question_back(rcode: int, asked: bytes) -> None:
    async with (
        faulty_upstream(lambda message: [upstream.header_only(message, rcode)]) as server,
        running(server.endpoint) as world,
    ):
        reply = read_dnspython(await world.ask(asked))
        assert (reply.rcode, len(reply.question), reply.opt is not None) == (rcode, 1, asked == ASKED_EDNS)


@pytest.mark.parametrize(
    ("asked", "octets", "passes"),
    [
        pytest.param(ASKED, 512, True, id="no EDNS, 512"),
        pytest.param(ASKED, 513, False, id="no EDNS, 513"),
        pytest.param(ASKED_EDNS, 1232, True, id="EDNS 1232, 1232"),
        pytest.param(ASKED_EDNS, 1233, False, id="EDNS 1232, 1233"),
        pytest.param(query("a.example", additional=(opt_record(0),)), 512, True, id="EDNS 0 counts as 512"),
        pytest.param(query("a.example", additional=(opt_record(100),)), 513, False, id="EDNS 100 counts as 512"),
        pytest.param(query("a.example", additional=(opt_record(4096),)), 4096, True, id="EDNS 4096, 4096"),
        pytest.param(query("a.example", additional=(opt_record(65535),)), 60_000, True, id="EDNS 65535, 60000"),
    ],
)
async def test_a_reply_larger_than_the_client_takes_becomes_tc(asked: bytes, octets: int, passes: bool) -> None:
    async with (
        faulty_upstream(lambda message: [upstream.sized(message, octets)]) as server,
        running(server.endpoint) as world,
    ):
        reply = await world.ask(asked)
        if passes:
            assert reply == upstream.sized(asked, octets)
            return
        reading = read_dnspython(reply)
        assert upstream.is_truncated(reply)
        assert (reading.rcode, len(reading.question), len(reading.answers)) == (upstream.NOERROR, 1, 0)
        assert (reading.opt is not None) == (asked[11] == 1)


WRONG: Sequence[tuple[str, Callable[[bytes], Step]]] = [
    ("no octets", lambda _: b""),
    ("one octet", lambda asked: asked[:1]),
    ("the ID alone", lambda asked: asked[:2]),
    ("eleven octets", lambda asked: upstream.right(asked)[:11]),
    ("a question that is cut", lambda asked: upstream.right(asked)[:20]),
    ("wrong ID", upstream.wrong_id),
    ("other name", upstream.other_question),
    ("a name that ours ends with", lambda asked: upstream.other_question(asked, "example.net")),
    ("a name that ends with ours", lambda asked: upstream.other_question(asked, "a.www.example.net")),
    ("other type", lambda asked: upstream.other_question(asked, "www.example.net", TXT)),
    ("other class", lambda asked: upstream.other_question(asked, "www.example.net", klass=3)),
    ("QR=0", upstream.without_qr),
    ("another opcode", lambda asked: asked[:2] + bytes([0xA0]) + upstream.right(asked)[3:]),
    ("header-only NOERROR", lambda asked: upstream.header_only(asked, upstream.NOERROR)),
    ("header-only NXDOMAIN", lambda asked: upstream.header_only(asked, upstream.NXDOMAIN)),
    ("two questions", lambda asked: asked[:2] + b"\x81\x80\0\2\0\0\0\0\0\0" + upstream.question_of(asked) * 2),
    ("no question but octets", lambda asked: upstream.header_only(asked, upstream.SERVFAIL) + b"x"),
    ("a name that points at itself", lambda asked: asked[:2] + b"\x81\x80\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1"),
    ("a chain of pointers", lambda asked: asked[:2] + b"\x81\x80\0\1\xff\xff\0\0\0\0" + b"\xc0\x0c" * 30_000),
    ("a foreign port", lambda asked: Elsewhere(upstream.right(asked, rcode=upstream.REFUSED))),
]


@pytest.mark.parametrize("wrong", [pytest.param(make, id=name) for name, make in WRONG])
async def test_a_forged_or_malformed_reply_is_passed_over_and_the_right_one_served(
    wrong: Callable[[bytes], Step],
) -> None:
    def script(asked: bytes) -> list[Step]:
        return [wrong(asked), wrong(asked), upstream.right(asked)]

    async with faulty_upstream(script) as server, running(server.endpoint) as world:
        assert await world.ask(ASKED) == upstream.right(ASKED)
        # The first matching reply was used: no upstream was asked again or counted as failing.
        assert len(server.asked_datagrams) == 1
        assert not world.forwarder.upstreams.used[0].health.misses
        await assert_nothing_is_left(world)


async def test_a_thousand_wrong_ids_do_not_keep_the_right_reply_out() -> None:
    def script(asked: bytes) -> list[Step]:
        # In waves that fit the queue of the kernel; a larger wave could lose the right reply.
        waves: list[Step] = []
        for _ in range(20):
            waves += [upstream.wrong_id(asked)] * 50 + [Pause(0)]
        return [*waves, upstream.right(asked)]

    async with faulty_upstream(script, silence) as server, running(server.endpoint) as world:
        assert await world.ask(ASKED) == upstream.right(ASKED)
        # On a machine without time for us, the query is sent again.
        sent = len(server.asked_datagrams)
        assert 1000 <= world.server.counters.forward_mismatches <= 1000 * sent
        assert not world.forwarder.upstreams.used[0].health.misses
        # TCP is tried once, whatever the number of guesses.
        assert len(server.asked_streams) == 1
        await assert_nothing_is_left(world)


async def test_a_query_whose_id_is_guessed_at_is_answered_over_tcp() -> None:
    """An attacker has a few guesses per port; then the query goes over TCP, which cannot be guessed."""
    async with (
        faulty_upstream(lambda asked: [upstream.wrong_id(asked)] * 8) as server,
        running(server.endpoint) as world,
    ):
        assert await world.ask(ASKED) == upstream.right(ASKED)
        assert len(server.asked_datagrams) == 1
        assert [asked.message[2:] for asked in server.asked_streams] == [ASKED[2:]]
        assert not world.forwarder.upstreams.used[0].health.misses
        await assert_nothing_is_left(world)


async def test_replies_that_come_twice_or_late_are_dropped_without_a_trace() -> None:
    late = trio.Event()

    def script(asked: bytes) -> list[Step]:
        return [upstream.right(asked), upstream.right(asked), Until(late), upstream.right(asked, rcode=5)]

    async with faulty_upstream(script) as server, running(server.endpoint) as world, world.client() as client:
        await client.send(ASKED)
        assert await client.recv(512) == upstream.right(ASKED)
        late.set()
        await wait_until(lambda: world.server.counters.forward_mismatches == 2)
        await assert_nothing_is_left(world)
        with pytest.raises(trio.WouldBlock):
            client_has_nothing(client)


def client_has_nothing(client: trio.socket.SocketType) -> None:
    try:
        client._sock.recv(512)  # type: ignore[attr-defined]  # trio's own recv would wait
    except BlockingIOError:
        raise trio.WouldBlock from None


async def test_replies_in_another_order_each_reach_their_query() -> None:
    gates = {name: trio.Event() for name in ("a.example", "b.example", "c.example")}
    queries = {name: query(name, ident=7) for name in gates}

    def script(asked: bytes) -> list[Step]:
        name = next(name for name in gates if queries[name][12:] == asked[12:])
        return [Until(gates[name]), upstream.right(asked)]

    async with faulty_upstream(script) as server, running(server.endpoint) as world, world.client() as client:
        for message in queries.values():
            await client.send(message)
        await server.wait_asked(datagrams=3)
        for name in reversed(gates):
            gates[name].set()
            assert await client.recv(512) == upstream.right(queries[name])


async def test_a_silent_upstream_gives_way_to_the_second_after_the_retry_time() -> None:
    async with (
        faulty_upstream(silence) as first,
        faulty_upstream() as second,
        running(first.endpoint, second.endpoint) as world,
    ):
        assert await world.ask(ASKED) == upstream.right(ASKED)
        gap = second.asked_datagrams[0].at - first.asked_datagrams[0].at
        assert RETRY - 0.05 <= gap < GIVE_UP
        assert world.server.counters.forward_retries == 1
        await assert_nothing_is_left(world)


async def test_a_third_upstream_is_asked_when_two_are_silent(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream(silence, silence) as second,
        faulty_upstream() as third,
        running(first.endpoint, second.endpoint, third.endpoint) as world,
    ):
        assert await world.ask(ASKED) == upstream.right(ASKED)
        assert [len(server.asked_datagrams) for server in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize("number", [3, 7, 14])
async def test_an_upstream_behind_many_silent_ones_answers_within_the_deadline(clock: MockClock, number: int) -> None:
    async with AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(faulty_upstream(silence, silence)) for _ in range(number)]
        last = await stack.enter_async_context(faulty_upstream())
        world = await stack.enter_async_context(running(*[one.endpoint for one in silent], last.endpoint))
        began = trio.current_time()
        assert await world.ask(ASKED) == upstream.right(ASKED)
        assert trio.current_time() - began <= 2 * RETRY + 2 * TICK
        assert {len(server.asked_datagrams) for server in (*silent, last)} == {1}
        await assert_nothing_is_left(world)


async def test_a_slow_reply_of_the_first_of_many_upstreams_asks_no_other(clock: MockClock) -> None:
    slow: Script = lambda asked: [Pause(0.35), upstream.right(asked)]  # noqa: E731
    async with (
        faulty_upstream(slow) as first,
        faulty_upstream() as others,
        running(first.endpoint, *[others.endpoint] * 14) as world,
    ):
        assert await world.ask(ASKED) == upstream.right(ASKED)
        assert (len(first.asked_datagrams), len(others.asked_datagrams)) == (1, 0)


async def test_upstreams_behind_many_silent_ones_are_asked_over_tcp_too(clock: MockClock) -> None:
    async with AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(faulty_upstream(silence, silence)) for _ in range(4)]
        last = await stack.enter_async_context(faulty_upstream(silence, answer))
        endpoints = [*[one.endpoint for one in silent], last.endpoint]
        for use_tcp in (False, True):
            forwarding = replace(TRUSTING, use_tcp=use_tcp)
            async with running(*endpoints, forwarding=forwarding) as world:
                assert await world.ask(ASKED) == upstream.right(ASKED)


async def test_an_upstream_that_leaves_queries_to_the_second_goes_behind_it_and_comes_back_by_a_probe(
    clock: MockClock,
) -> None:
    """While one of two servers is down, not every query may wait for the retry."""
    async with (
        faulty_upstream(silence) as first,
        faulty_upstream() as second,
        running(first.endpoint, second.endpoint) as world,
        world.client() as client,
    ):
        for number in range(3):
            await client.send(query(f"h{number}.example.net"))
        for _ in range(3):
            await client.recv(512)
        assert world.forwarder.upstreams.used[0].health.failing
        asked_first = len(first.asked_datagrams)
        await world.ask(ASKED)
        assert [asked.message for asked in first.asked_datagrams[asked_first:] if len(asked.message) > 17] == []
        back = trio.current_time()
        first.datagrams = answer
        while world.forwarder.upstreams.used[0].health.failing:  # noqa: ASYNC110  # the clock jumps
            await trio.sleep(TICK)
        assert trio.current_time() - back < 1.5
        asked_second = len(second.asked_datagrams)
        await world.ask(ASKED)
        assert len(second.asked_datagrams) == asked_second


async def test_several_dead_upstreams_are_probed_side_by_side(clock: MockClock) -> None:
    async with faulty_upstream(silence) as server, running(*[server.endpoint] * 8) as world:
        for known in world.forwarder.upstreams.used:
            known.health.misses = 100
        await server.wait_asked(datagrams=8)
        times = [asked.at for asked in server.asked_datagrams[:8]]
        assert times[-1] - times[0] < 0.4


async def test_silence_everywhere_is_servfail_with_its_reason_before_coredns_gives_up(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream(silence, silence) as second,
        running(first.endpoint, second.endpoint) as world,
    ):
        began = trio.current_time()
        reply = await world.ask(ASKED_EDNS)
        assert trio.current_time() - began < COREDNS_SECONDS
        assert (upstream.rcode_of(reply), extended_error(reply)) == (upstream.SERVFAIL, _NO_REACHABLE_AUTHORITY)
        assert len(first.asked_datagrams) <= 2
        assert len(second.asked_datagrams) <= 2
        assert world.server.counters.own_by_rcode[Rcode.SERVFAIL] == 1
        await assert_nothing_is_left(world)


async def test_a_refusal_sends_the_query_to_the_next_upstream_at_once(clock: MockClock) -> None:
    with refusing_upstream() as refusing:
        async with faulty_upstream() as second, running(refusing, second.endpoint) as world:
            began = trio.current_time()
            assert await world.ask(ASKED) == upstream.right(ASKED)
            assert trio.current_time() - began < RETRY
            await assert_nothing_is_left(world)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_refusals_everywhere_are_servfail_at_once_after_two_sends_each(clock: MockClock, host: str) -> None:
    with refusing_upstream(host) as first, refusing_upstream(host) as second:
        async with running(first, second) as world:
            for number in range(1, 6):
                began = trio.current_time()
                reply = await world.ask(query(f"h{number}.example.net", additional=(opt_record(),)))
                assert trio.current_time() - began < RETRY
                assert (upstream.rcode_of(reply), extended_error(reply)) == (upstream.SERVFAIL, _NETWORK_ERROR)
                assert world.server.counters.forward_sends <= 4 * number
            await assert_nothing_is_left(world)


async def test_an_upstream_that_starts_to_fail_is_not_asked_in_place_of_the_next() -> None:
    """The order changes with health; a flight keeps the order of its start."""
    with refusing_upstream() as refusing:
        async with faulty_upstream() as second, running(refusing, second.endpoint) as world:
            world.forwarder.upstreams.used[0].health.misses = 2
            sends = world.server.counters.forward_sends
            assert await world.ask(ASKED) == upstream.right(ASKED)
            assert world.forwarder.upstreams.used[0].health.failing
            assert world.server.counters.forward_sends - sends == 2


async def test_an_address_without_a_route_sends_the_query_to_the_next_upstream_at_once(clock: MockClock) -> None:
    # Loopback has no route to a documentation address: the kernel refuses at connect.
    async with faulty_upstream() as second, running(Endpoint("255.255.255.255", 53), second.endpoint) as world:
        began = trio.current_time()
        assert await world.ask(ASKED) == upstream.right(ASKED)
        assert trio.current_time() - began < RETRY
        assert world.server.counters.forward_errors == 1


async def test_a_flight_that_waits_twice_on_one_port_survives_its_refusal() -> None:
    async with (
        faulty_upstream(silence, silence) as server,
        running(server.endpoint, forwarding=replace(TRUSTING, source_ports=2)) as world,
        world.client() as client,
    ):
        await client.send(ASKED)
        await server.wait_asked(datagrams=2)
        assert len({asked.source for asked in server.asked_datagrams}) == 1
        assert world.waiting == 2
        await server.die()
        await client.send(query("late.example.net"))
        replies_seen = [await client.recv(512) for _ in range(2)]
        assert {upstream.rcode_of(reply) for reply in replies_seen} == {upstream.SERVFAIL}
        await assert_nothing_is_left(world)
        assert read_dnspython(await world.ask(query("app.example.org"))).rcode == upstream.NOERROR


async def test_a_query_that_no_longer_fits_the_kernel_goes_to_the_next_upstream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        faulty_upstream() as first,
        faulty_upstream() as second,
        running(first.endpoint, second.endpoint) as world,
    ):
        await world.ask(ASKED)
        with monkeypatch.context() as patched:
            patched.setattr(world.forwarder.upstreams.used[0].ports, "post", no_buffer_space)
            assert await world.ask(ASKED) == upstream.right(ASKED)
        assert len(second.asked_datagrams) == 1


def no_buffer_space(_: Flight) -> None:
    raise OSError(105, "No buffer space available")


async def test_udp_that_is_lost_is_made_up_for_by_tcp(clock: MockClock) -> None:
    async with faulty_upstream(silence, answer) as server, running(server.endpoint) as world:
        assert await world.ask(ASKED) == upstream.right(ASKED)
        assert len(server.asked_streams) == 1
        assert server.asked_streams[0].message[2:] == ASKED[2:]
        await assert_nothing_is_left(world)


@pytest.mark.parametrize(
    "streams",
    [
        pytest.param(lambda _: [Close()], id="close"),
        pytest.param(lambda _: [Reset()], id="reset"),
        pytest.param(lambda asked: [upstream.wrong_id(asked)], id="wrong ID"),
        pytest.param(lambda asked: [upstream.other_question(asked)], id="other question"),
        pytest.param(lambda _: [b""], id="an empty message"),
        pytest.param(silence, id="silence"),
    ],
)
async def test_udp_and_tcp_that_both_fail_are_servfail_in_time(clock: MockClock, streams: Script) -> None:
    async with faulty_upstream(silence, streams) as server, running(server.endpoint) as world:
        began = trio.current_time()
        assert upstream.rcode_of(await world.ask(ASKED)) == upstream.SERVFAIL
        assert trio.current_time() - began < COREDNS_SECONDS
        assert len(server.asked_streams) == 1
        await assert_nothing_is_left(world)


async def test_many_silent_queries_start_only_so_many_tcp_attempts(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as server,
        running(server.endpoint) as world,
        world.client() as client,
    ):
        for number in range(200):
            await client.send(query("www.example.net", ident=number))
        replies_seen = [await client.recv(512) for _ in range(200)]
        assert {upstream.rcode_of(reply) for reply in replies_seen} == {upstream.SERVFAIL}
        assert 0 < len(server.asked_streams) <= 64
        await assert_nothing_is_left(world)


async def test_a_bug_met_by_one_reply_is_servfail_for_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    def large(asked: bytes) -> list[bytes]:
        return [upstream.sized(asked, 1000)]

    async with faulty_upstream(large) as server, running(server.endpoint) as world:
        with monkeypatch.context() as patched:
            patched.setattr(replies, "pass_on", fail)
            asked = query("datagram.example.net", additional=(opt_record(),))
            assert upstream.rcode_of(await world.ask(asked)) == upstream.SERVFAIL
            assert upstream.rcode_of(await world.ask_stream(query("stream.example.net"))) == upstream.SERVFAIL
        assert world.server.counters.failures == 2
        assert await world.ask(ASKED_EDNS) == upstream.sized(ASKED_EDNS, 1000)
        await assert_nothing_is_left(world)


def fail(*_: object, **__: object) -> bytes:
    raise RuntimeError("a bug")


async def test_nxdomain_for_another_type_of_a_name_of_ours_becomes_nodata() -> None:
    script: Script = lambda asked: [upstream.right(asked, rcode=upstream.NXDOMAIN, answers=0)]  # noqa: E731
    async with faulty_upstream(script) as server, running(server.endpoint) as world:
        for asked in (query("app.example.org", MX), query("example.org"), query("org", NS)):
            assert await world.ask(asked) == upstream.right(asked, answers=0)
        assert upstream.rcode_of(await world.ask(query("other.example.org"))) == upstream.NXDOMAIN


async def test_without_any_upstream_a_query_is_servfail_at_once() -> None:
    async with running() as world:
        assert upstream.rcode_of(await world.ask(ASKED)) == upstream.SERVFAIL
        await assert_nothing_is_left(world)
