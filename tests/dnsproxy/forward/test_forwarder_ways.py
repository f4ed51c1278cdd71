"""The ways to an answer, through the whole server: TCP or TLS from the start, TCP after UDP, UDP after TCP, loops."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.table import Host
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach
from dnsproxy.forward.deadlines import GIVE_UP, RETRY, TICK
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.settings import ForwardSettings, TcpEndpoint, TlsEndpoint
from dnsproxy.replace.balancers import Balancers
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward import certificates
from tests.dnsproxy.forward.certificates import NAME
from tests.kit import upstream_replies as upstream
from tests.kit.dns_server import OURS, TRUSTING, Running, open_descriptors, running, wait_until
from tests.kit.faulty_upstream import (
    Close,
    Part,
    Pause,
    Reset,
    Script,
    Step,
    answer,
    faulty_upstream,
    refusing_upstream,
    silence,
)
from tests.kit.messages import TXT, opt_record, query, read_both, read_dnspython
from tests.kit.public_dns import PublicDns

ASKED = query("www.example.net")
ASKED_EDNS = query("www.example.net", additional=(opt_record(),))
RIGHT = upstream.right(ASKED)
OVER_TCP = replace(TRUSTING, use_tcp=True)
WATCHFUL = replace(TRUSTING, detect_loops=True)


async def assert_nothing_is_left(world: Running) -> None:
    await wait_until(lambda: len(world.forwarder) == 0)
    assert world.waiting == 0


# --- over TCP from the start (options use-vc) ------------------------------------------------------------------------


async def test_what_is_to_be_asked_over_tcp_is_not_asked_over_udp(clock: MockClock) -> None:
    async with faulty_upstream() as server, running(server.endpoint, forwarding=OVER_TCP) as world:
        for number in range(10):
            asked = query(f"h{number}.example.net", additional=(opt_record(),))
            assert await world.ask(asked) == upstream.right(asked)
        assert await world.ask_stream(ASKED) == RIGHT
        assert (len(server.asked_streams), len(server.asked_datagrams), server.connections) == (11, 0, 1)
        await assert_nothing_is_left(world)


async def test_a_reply_over_tcp_that_the_client_does_not_take_is_cut_for_it(clock: MockClock) -> None:
    """Then the client itself retries over TCP."""
    large: Script = lambda asked: [upstream.sized(asked, 5000)]  # noqa: E731
    async with faulty_upstream(silence, large) as server, running(server.endpoint, forwarding=OVER_TCP) as world:
        assert upstream.is_truncated(await world.ask(ASKED_EDNS))
        assert await world.ask_stream(ASKED_EDNS) == upstream.sized(ASKED_EDNS, 5000)


@pytest.mark.parametrize(
    "streams",
    [
        pytest.param(lambda _: [Close()], id="FIN"),
        pytest.param(lambda _: [Reset()], id="RST"),
    ],
)
async def test_a_connection_that_fails_sends_the_query_to_the_next_upstream_at_once(
    clock: MockClock, streams: Script
) -> None:
    async with (
        faulty_upstream(silence, streams) as first,
        faulty_upstream(silence, answer) as second,
        running(first.endpoint, second.endpoint, forwarding=OVER_TCP) as world,
    ):
        began = trio.current_time()
        assert await world.ask(ASKED) == RIGHT
        assert trio.current_time() - began < RETRY
        await assert_nothing_is_left(world)


HOSTILE: list[Script] = [
    silence,
    lambda _: [Close()],
    lambda _: [Reset()],
    lambda asked: [upstream.wrong_id(asked)],
    lambda asked: [upstream.other_question(asked)],
    lambda asked: [Part(b"\xff\xff" + upstream.right(asked))],
    lambda asked: [Part(upstream.framed(upstream.right(asked))[:20]), Reset()],
    lambda _: [Part(bytes(3))],
]


async def test_one_good_upstream_behind_every_kind_of_bad_one_answers_all_clients_over_tcp(clock: MockClock) -> None:
    async with AsyncExitStack() as stack:
        bad = [await stack.enter_async_context(faulty_upstream(silence, script)) for script in HOSTILE]
        good = await stack.enter_async_context(faulty_upstream(silence, answer))
        endpoints = [one.endpoint for one in (*bad, good)]
        world = await stack.enter_async_context(running(*endpoints, forwarding=OVER_TCP))
        before = open_descriptors()
        for number in range(20):
            asked = query(f"h{number}.example.net")
            assert await world.ask(asked) == upstream.right(asked)
            assert await world.ask_stream(asked) == upstream.right(asked)
        await assert_nothing_is_left(world)
        # At most one connection for each, at both of its ends, and those that are replaced.
        assert open_descriptors() <= before + 4 * len(endpoints)


async def test_a_refused_connection_sends_the_query_to_the_next_upstream_at_once(clock: MockClock) -> None:
    with refusing_upstream() as refusing:
        async with (
            faulty_upstream(silence, answer) as second,
            running(refusing, second.endpoint, forwarding=OVER_TCP) as world,
        ):
            began = trio.current_time()
            assert await world.ask(ASKED) == RIGHT
            assert trio.current_time() - began < RETRY


async def test_refused_connections_everywhere_are_servfail_at_once(clock: MockClock) -> None:
    with refusing_upstream() as first, refusing_upstream("::1") as second:
        async with running(first, second, forwarding=OVER_TCP) as world:
            began = trio.current_time()
            reply = await world.ask(ASKED_EDNS)
            assert trio.current_time() - began < RETRY
            assert upstream.rcode_of(reply) == upstream.SERVFAIL
            assert world.server.counters.forward_sends <= 4
            await assert_nothing_is_left(world)


async def test_a_silent_connection_gives_way_to_the_next_upstream_after_the_retry_time(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream(silence, answer) as second,
        running(first.endpoint, second.endpoint, forwarding=OVER_TCP) as world,
    ):
        assert await world.ask(ASKED) == RIGHT
        gap = second.asked_streams[0].at - first.asked_streams[0].at
        assert RETRY - 2 * TICK <= gap <= RETRY + 2 * TICK
        assert world.forwarder.upstreams.used[0].health.misses == 1


async def test_a_slow_connection_still_wins_over_a_silent_one(clock: MockClock) -> None:
    slow: Script = lambda asked: [Pause(1.0), upstream.right(asked)]  # noqa: E731
    async with (
        faulty_upstream(silence, slow) as first,
        faulty_upstream(silence, silence) as second,
        running(first.endpoint, second.endpoint, forwarding=OVER_TCP) as world,
    ):
        assert await world.ask(ASKED) == RIGHT
        assert not world.forwarder.upstreams.used[0].health.misses


@pytest.mark.parametrize("attempts", [1, 2])
async def test_silence_over_tcp_is_servfail_in_time_after_so_many_attempts(clock: MockClock, attempts: int) -> None:
    async with (
        faulty_upstream(answer, silence) as server,
        running(server.endpoint, forwarding=replace(OVER_TCP, attempts=attempts)) as world,
    ):
        began = trio.current_time()
        assert upstream.rcode_of(await world.ask(ASKED)) == upstream.SERVFAIL
        assert trio.current_time() - began <= GIVE_UP + 2 * TICK
        assert (len(server.asked_streams), len(server.asked_datagrams)) == (attempts, 0)
        await assert_nothing_is_left(world)


async def test_a_client_that_asks_again_has_the_next_upstream_asked_over_tcp_too(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream(silence, answer) as second,
        running(first.endpoint, second.endpoint, forwarding=OVER_TCP) as world,
        world.client() as client,
    ):
        await client.send(ASKED)
        await first.wait_asked(streams=1)
        began = trio.current_time()
        await client.send(ASKED)
        assert await client.recv(512) == RIGHT
        assert trio.current_time() - began < RETRY / 2


async def test_a_server_of_one_query_a_connection_is_asked_once_for_each_query(clock: MockClock) -> None:
    """A second connection for a query that waits for its turn would take the turn of another."""
    turns: Counter[tuple[str, int]] = Counter()
    async with faulty_upstream(silence, silence) as server, running(server.endpoint, forwarding=OVER_TCP) as world:

        def script(asked: bytes) -> list[Step]:
            source = server.asked_streams[-1].source
            turns[source] += 1
            return [Pause(0.25), upstream.right(asked), Close()] if turns[source] == 1 else []

        server.streams = script
        asked = [query(f"h{number}.example.net", ident=number) for number in range(60)]
        async with world.client() as client:
            for message in asked:
                await client.send(message)
            assert {await client.recv(512) for _ in asked} == {upstream.right(message) for message in asked}
        # Each on one of its own, besides the two connections that taught it.
        assert server.connections <= len(asked)


async def test_a_connection_that_was_closed_while_idle_costs_no_client_anything(clock: MockClock) -> None:
    script: Script = lambda asked: [upstream.right(asked), Pause(0.5), Close()]  # noqa: E731
    async with faulty_upstream(silence, script) as server, running(server.endpoint, forwarding=OVER_TCP) as world:
        for number in range(5):
            asked = query(f"h{number}.example.net")
            assert await world.ask(asked) == upstream.right(asked)
            await trio.sleep(0.5 - 0.1 + number * 0.05)
        assert world.server.counters.forward_timeouts == 0


async def test_connections_that_end_at_random_under_load_leave_the_server_well(clock: MockClock) -> None:
    turns = iter(range(10**6))
    script: Script = lambda asked: [Reset()] if next(turns) % 9 == 8 else [Pause(0.01), upstream.right(asked)]  # noqa: E731
    async with (
        faulty_upstream(silence, script) as server,
        running(server.endpoint, forwarding=OVER_TCP) as world,
        world.client() as client,
    ):
        for wave in range(8):
            for number in range(25):
                await client.send(query(f"w{wave}n{number}.example.net", ident=number))
            assert {int.from_bytes((await client.recv(512))[:2], "big") for _ in range(25)} == set(range(25))
        server.streams = answer
        assert await world.ask(ASKED) == RIGHT
        assert world.server.counters.failures == 0
        await assert_nothing_is_left(world)


# --- over TLS --------------------------------------------------------------------------------------------------------


@pytest.fixture
def _trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The system trusts the authority of the tests."""
    authorities = tmp_path / "authorities.pem"
    authorities.write_bytes(certificates.CA.cert_pem.bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))


def tls(endpoint: Endpoint, name: str = NAME) -> TlsEndpoint:
    return TlsEndpoint(endpoint.host, endpoint.port, name)


@pytest.mark.usefixtures("_trusted")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_an_upstream_over_tls_answers_clients_of_both_transports(clock: MockClock, host: str) -> None:
    async with (
        faulty_upstream(host=host, secured=certificates.good()) as server,
        running(tls(server.endpoint)) as world,
    ):
        assert await world.ask(ASKED) == RIGHT
        assert await world.ask_stream(ASKED) == RIGHT
        assert (len(server.asked_streams), len(server.asked_datagrams), server.connections) == (2, 0, 1)
        await assert_nothing_is_left(world)


@pytest.mark.usefixtures("_trusted")
@pytest.mark.usefixtures("_trusted")
@pytest.mark.parametrize("secured", [True, False], ids=["TLS", "TCP"])
async def test_over_a_stream_upstream_too_what_leads_here_is_replaced_and_the_rest_passes(
    clock: MockClock, secured: bool
) -> None:
    public = PublicDns("app.example.org 60 A 203.0.113.10", "www.example.org 60 A 198.51.100.7")
    writer = TableWriter(ttl=5)
    for name in ("app.example.org", "www.example.org", "preview.example.org"):
        writer.put(Host(name, Reach.NAME, ("10.96.7.7",), claimed=Claimed.VERIFIED))
    writer.lead(Balancers({"203.0.113.10": ("10.96.7.7",)}))
    context = certificates.good() if secured else None
    async with faulty_upstream(silence, public, secured=context) as server:
        upstream = tls(server.endpoint) if secured else TcpEndpoint(server.endpoint.host, server.endpoint.port)
        async with running(upstream, table=writer.publish()) as world:
            for ask in (world.ask, world.ask_stream):
                for name in ("app.example.org", "preview.example.org"):
                    assert {str(content) for *_, content in read_both(await ask(query(name))).answers} == {"10.96.7.7"}
                assert await ask(query("www.example.org")) == public.reply(query("www.example.org"))


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make, _ in certificates.BAD])
async def test_an_upstream_with_a_wrong_certificate_is_servfail_in_time_and_logged_once(
    clock: MockClock, make: Callable[[], ssl.SSLContext]
) -> None:
    with capture_logs() as logs:
        async with faulty_upstream(secured=make()) as server, running(tls(server.endpoint)) as world:
            for number in range(5):
                began = trio.current_time()
                reply = await world.ask(query(f"h{number}.example.net"))
                assert upstream.rcode_of(reply) == upstream.SERVFAIL
                assert trio.current_time() - began <= GIVE_UP + 2 * TICK
            assert upstream.rcode_of(await world.ask_stream(ASKED)) == upstream.SERVFAIL
            # No part of the query was sent, on any way.
            assert not server.asked_streams + server.asked_datagrams
            await assert_nothing_is_left(world)
    assert [line["event"] for line in logs] == ["upstream is unreachable over a stream"]


@pytest.mark.usefixtures("_trusted")
@pytest.mark.parametrize("streams", [answer, silence], ids=["DNS", "silence"])
async def test_a_plain_server_where_tls_is_expected_is_servfail_in_time(clock: MockClock, streams: Script) -> None:
    with capture_logs() as logs:
        async with faulty_upstream(answer, streams) as server, running(tls(server.endpoint)) as world:
            for number in range(3):
                began = trio.current_time()
                reply = await world.ask(query(f"h{number}.example.net"))
                assert upstream.rcode_of(reply) == upstream.SERVFAIL
                assert trio.current_time() - began <= GIVE_UP + 2 * TICK
            assert not server.asked_datagrams
    assert len([line for line in logs if line["log_level"] == "warning"]) == 1


@pytest.mark.usefixtures("_trusted")
async def test_an_upstream_over_tls_that_fails_gives_way_to_a_plain_one_and_back(clock: MockClock) -> None:
    async with (
        faulty_upstream(secured=certificates.expired()) as first,
        faulty_upstream() as second,
        running(tls(first.endpoint), second.endpoint) as world,
    ):
        for number in range(4):
            asked = query(f"h{number}.example.net")
            began = trio.current_time()
            assert await world.ask(asked) == upstream.right(asked)
            assert trio.current_time() - began < RETRY
        assert len(second.asked_datagrams) == 4
        assert world.forwarder.upstreams.used[0].health.failing
        first.secured = certificates.good()
        await trio.sleep(2.0)
        assert not world.forwarder.upstreams.used[0].health.failing
        assert await world.ask(ASKED) == RIGHT
        assert len(second.asked_datagrams) == 4


# --- where one way is closed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("listens", [False, True], ids=["TCP refused", "TCP silent"])
async def test_a_client_over_tcp_is_answered_by_an_upstream_that_speaks_udp_alone(
    clock: MockClock, listens: bool
) -> None:
    async with faulty_upstream(answer, silence, listens=listens) as server, running(server.endpoint) as world:
        began = trio.current_time()
        assert await world.ask_stream(ASKED) == RIGHT
        assert trio.current_time() - began < GIVE_UP
        assert len(server.asked_datagrams) == 1


async def test_a_client_over_tcp_gets_no_cut_reply(clock: MockClock) -> None:
    """It has no use for one: it already asks over TCP."""
    cut: Script = lambda asked: [upstream.truncated(asked)]  # noqa: E731
    async with faulty_upstream(cut, silence) as server, running(server.endpoint) as world:
        assert upstream.rcode_of(await world.ask_stream(ASKED)) == upstream.SERVFAIL
        assert len(server.asked_datagrams) == 1


async def test_a_cut_reply_passes_to_a_client_over_udp_who_then_comes_over_tcp(clock: MockClock) -> None:
    cut: Script = lambda asked: [upstream.truncated(asked)]  # noqa: E731
    large: Script = lambda asked: [upstream.sized(asked, 5000)]  # noqa: E731
    async with faulty_upstream(cut, large) as server, running(server.endpoint) as world:
        assert await world.ask(ASKED) == upstream.truncated(ASKED)
        assert not server.asked_streams
        assert await world.ask_stream(ASKED) == upstream.sized(ASKED, 5000)


async def test_fewer_strays_than_a_guesser_needs_do_not_bring_tcp_in(clock: MockClock) -> None:
    script: Script = lambda asked: [*[upstream.wrong_id(asked)] * 7, Pause(0.5), upstream.right(asked)]  # noqa: E731
    async with faulty_upstream(script, answer) as server, running(server.endpoint) as world:
        assert await world.ask(ASKED) == RIGHT
        assert (len(server.asked_streams), world.server.counters.forward_mismatches) == (0, 7)


async def test_guessing_at_one_port_brings_tcp_in_for_all_who_wait_there(clock: MockClock) -> None:
    asked = [query(f"h{number}.example.net", ident=number) for number in range(10)]
    guesses = iter([8])
    script: Script = lambda message: [upstream.wrong_id(message)] * next(guesses, 0)  # noqa: E731
    async with faulty_upstream(script, answer) as server, running(server.endpoint) as world:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect((world.endpoint.host, world.endpoint.port))
            # Without a pause, so that they are one batch and leave from one port.
            for message in asked:
                client.send(message)
            await server.wait_asked(datagrams=10, streams=10)
            assert len({one.source for one in server.asked_datagrams}) == 1
            await wait_until(lambda: len(world.forwarder) == 0)
            assert {client.recv(512) for _ in asked} == {upstream.right(message) for message in asked}


# --- loops -----------------------------------------------------------------------------------------------------------


class LeadsBack:
    """A server that forwards to this one: it sends every query back, and may pass our reply on."""

    def __init__(self) -> None:
        self.ours: Endpoint | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self) -> LeadsBack:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def script(self, asked: bytes) -> list[Step]:
        if self.ours is None:
            return answer(asked)
        self._socket.sendto(asked, (self.ours.host, self.ours.port))
        return []


@pytest.fixture
def leads_back() -> Iterator[LeadsBack]:
    with LeadsBack() as made:
        yield made


async def until_looping(world: Running) -> None:
    while not world.forwarder.upstreams.used[0].looping:  # noqa: ASYNC110  # the clock jumps; a test has a deadline
        await trio.sleep(0.25)


async def test_an_upstream_that_loops_is_excluded_and_logged_once(clock: MockClock, leads_back: LeadsBack) -> None:
    with capture_logs() as logs:
        async with (
            faulty_upstream(leads_back.script, silence) as looping,
            faulty_upstream() as well,
            running(forwarding=WATCHFUL) as world,
        ):
            leads_back.ours = world.endpoint
            world.server.replace_upstreams(replace(WATCHFUL, upstreams=(looping.endpoint, well.endpoint)))
            await until_looping(world)
            asked = len(looping.asked_datagrams)
            for number in range(5):
                message = query(f"h{number}.example.net")
                assert await world.ask(message) == upstream.right(message)
                assert await world.ask_stream(message) == upstream.right(message)
            assert len(looping.asked_datagrams) == asked
            assert not world.forwarder.loops.out
    errors = [line for line in logs if line["log_level"] == "error"]
    assert [line["upstream"] for line in errors] == [str(looping.endpoint)]
    assert "dnsPolicy: Default" in errors[0]["event"]


async def test_if_every_upstream_loops_a_query_is_servfail_at_once(clock: MockClock, leads_back: LeadsBack) -> None:
    async with (
        faulty_upstream(leads_back.script, silence) as server,
        running(forwarding=WATCHFUL) as world,
    ):
        leads_back.ours = world.endpoint
        world.server.replace_upstreams(replace(WATCHFUL, upstreams=(server.endpoint,)))
        await until_looping(world)
        began = trio.current_time()
        assert upstream.rcode_of(await world.ask(ASKED)) == upstream.SERVFAIL
        assert upstream.rcode_of(await world.ask_stream(ASKED)) == upstream.SERVFAIL
        assert trio.current_time() - began < 0.1
        assert read_dnspython(await world.ask(query(OURS))).rcode == upstream.NOERROR
        leads_back.ours = None
        await trio.sleep(10)
        assert await world.ask(ASKED) == RIGHT


async def test_a_loop_that_is_not_found_yet_does_not_grow(clock: MockClock, leads_back: LeadsBack) -> None:
    """The query that comes back equals the one that waits: it joins it, and ends with it."""
    async with (
        faulty_upstream(leads_back.script, silence) as server,
        running(server.endpoint) as world,
    ):
        leads_back.ours = world.endpoint
        began = trio.current_time()
        assert upstream.rcode_of(await world.ask(ASKED)) == upstream.SERVFAIL
        assert trio.current_time() - began <= GIVE_UP + 2 * TICK
        assert len(server.asked_datagrams) <= 2
        await assert_nothing_is_left(world)


@pytest.mark.parametrize("stream", [False, True], ids=["UDP", "TCP"])
async def test_a_forged_probe_changes_nothing(clock: MockClock, stream: bool) -> None:
    async with faulty_upstream() as server, running(server.endpoint, forwarding=WATCHFUL) as world:
        await server.wait_asked(datagrams=1)
        probe = LoopProbes().make(server.endpoint, lambda: None)
        overheard = server.asked_datagrams[0].message
        await wait_until(lambda: not world.forwarder.loops.out)
        for forged in (probe.message, overheard, query("loop-probe.switchback.invalid", TXT)):
            reply = await (world.ask_stream(forged) if stream else world.ask(forged))
            assert reply == upstream.right(forged)
        await trio.sleep(3)
        assert not world.forwarder.upstreams.used[0].looping
        assert await world.ask(ASKED) == RIGHT


# --- upstreams that are replaced while queries are on their way ------------------------------------------------------


async def test_replaced_upstreams_still_answer_the_open_queries(clock: MockClock) -> None:
    late: Script = lambda asked: [Pause(0.4), upstream.right(asked)]  # noqa: E731
    async with (
        faulty_upstream(late) as old,
        faulty_upstream() as new,
        running(old.endpoint) as world,
        world.client() as client,
        await world.connect() as stream,
    ):
        await client.send(ASKED)
        await stream.send_all(upstream.framed(ASKED))
        await old.wait_asked(datagrams=1)
        world.server.replace_upstreams(ForwardSettings((new.endpoint,), detect_loops=False))
        other = query("other.example.net")
        assert await world.ask(other) == upstream.right(other)
        assert await client.recv(512) == RIGHT
        assert [asked.message[2:] for asked in new.asked_datagrams] == [other[2:]]
        assert [asked.message[2:] for asked in old.asked_datagrams] == [ASKED[2:]]
