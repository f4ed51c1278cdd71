"""Queries that many clients send at once or repeatedly: one flight, bounded attempts, remembered failures, limits."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Forward
from dnsproxy.datagrams.port import Sender
from dnsproxy.forward.admission import REMEMBER
from dnsproxy.forward.deadlines import GIVE_UP, IMPATIENT, PROBE_GIVE_UP, RETRY, TICK
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.tap.hub import Tap
from sidecar.loop.poller import Poller
from tests.dnsproxy.forward.flights import NotedPort
from tests.kit import upstream_replies as upstream
from tests.kit.dns_server import OURS, TRUSTING, Running, running, wait_until
from tests.kit.faulty_upstream import FaultyUpstream, Script, Until, answer, faulty_upstream, silence
from tests.kit.messages import AAAA, NS, extended_error, opt_record, option, query, read_dnspython, scanned

ASKED = query("www.example.net")
ASKED_EDNS = query("www.example.net", additional=(opt_record(),))
NO_REACHABLE_AUTHORITY, CACHED_ERROR = 22, 13


def under(message: bytes, ident: int) -> bytes:
    return ident.to_bytes(2, "big") + message[2:]


@asynccontextmanager
async def clients(world: Running, number: int) -> AsyncIterator[list[trio.socket.SocketType]]:
    async with trio.open_nursery():
        opened = []
        try:
            for _ in range(number):
                client = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                opened.append(client)
                await client.connect((world.endpoint.host, world.endpoint.port))
            yield opened
        finally:
            for client in opened:
                client.close()


class Gated:
    """A server that answers when the test allows it."""

    def __init__(self) -> None:
        self.gate = trio.Event()

    def script(self, asked: bytes) -> list[Until | bytes]:
        return [Until(self.gate), upstream.right(asked)]


def has_nothing(client: trio.socket.SocketType) -> bool:
    try:
        client._sock.recv(512)  # type: ignore[attr-defined]  # trio's own recv would wait
    except BlockingIOError:
        return True
    return False


# --- equal queries are one flight (RFC 5452 section 5) ---------------------------------------------------------------


async def test_equal_queries_are_one_datagram_and_each_client_has_its_reply_under_its_id(clock: MockClock) -> None:
    gated = Gated()
    async with (
        faulty_upstream(gated.script, silence) as server,
        running(server.endpoint) as world,
        clients(world, 20) as asking,
    ):
        for number, client in enumerate(asking):
            await client.send(under(ASKED, number))
        await wait_until(lambda: world.server.counters.forward_joined == 19)
        assert len(world.forwarder) == 20
        assert world.waiting == 1
        gated.gate.set()
        for number, client in enumerate(asking):
            assert await client.recv(512) == upstream.right(under(ASKED, number))
        assert len(server.asked_datagrams) == 1
        assert len(world.forwarder) == 0
        assert world.server.counters.upstream_by_rcode[upstream.NOERROR] == 20


async def test_one_client_that_asks_under_many_ids_has_a_reply_under_each(clock: MockClock) -> None:
    gated = Gated()
    async with (
        faulty_upstream(gated.script, silence) as server,
        running(server.endpoint) as world,
        world.client() as client,
    ):
        for number in range(50):
            await client.send(under(ASKED, number))
        await wait_until(lambda: len(world.forwarder) == 50)
        gated.gate.set()
        seen = {await client.recv(512) for _ in range(50)}
        assert seen == {upstream.right(under(ASKED, number)) for number in range(50)}
        assert len(server.asked_datagrams) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(query("www.example.org"), id="another name"),
        pytest.param(query("www.example.net", AAAA), id="another type"),
        pytest.param(query("WWW.example.net"), id="another case"),
        pytest.param(query("www.example.net", flags=0), id="another flag"),
        pytest.param(ASKED_EDNS, id="EDNS"),
        pytest.param(
            query("www.example.net", additional=(opt_record(options=option(8, b"\0\1\x18\0\xc0\0\2")),)),
            id="a client subnet",
        ),
    ],
)
async def test_queries_that_differ_in_an_octet_do_not_share_a_reply(clock: MockClock, other: bytes) -> None:
    """Everything that changes the answer is in the query, so equal queries may share a reply (CVE-2025-5994)."""
    gated = Gated()
    async with (
        faulty_upstream(gated.script, silence) as server,
        running(server.endpoint) as world,
        world.client() as client,
    ):
        await client.send(ASKED)
        await client.send(under(other, 7))
        await server.wait_asked(datagrams=2)
        gated.gate.set()
        assert {await client.recv(512) for _ in range(2)} == {upstream.right(ASKED), upstream.right(under(other, 7))}
        assert world.server.counters.forward_joined == 0


async def test_after_its_reply_a_query_is_asked_anew(clock: MockClock) -> None:
    """The server caches no reply; the cache in front of it does."""
    async with faulty_upstream() as server, running(server.endpoint) as world:
        for number in range(1, 4):
            assert await world.ask(ASKED) == upstream.right(ASKED)
            assert len(server.asked_datagrams) == number


async def test_those_who_share_a_flight_share_its_failure(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as server,
        running(server.endpoint) as world,
        clients(world, 5) as asking,
    ):
        for number, client in enumerate(asking):
            await client.send(under(ASKED_EDNS, number))
        for number, client in enumerate(asking):
            reply = await client.recv(512)
            assert (reply[:2], upstream.rcode_of(reply)) == (number.to_bytes(2, "big"), upstream.SERVFAIL)
            assert extended_error(reply) == NO_REACHABLE_AUTHORITY
        assert (len(world.forwarder), world.waiting) == (0, 0)


# --- a client that asks again ----------------------------------------------------------------------------------------


async def test_a_client_that_sends_its_query_again_has_the_next_upstream_asked_at_once(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream() as second,
        running(first.endpoint, second.endpoint) as world,
        world.client() as client,
    ):
        await client.send(ASKED)
        await first.wait_asked(datagrams=1)
        began = trio.current_time()
        await client.send(ASKED)
        assert await client.recv(512) == upstream.right(ASKED)
        assert trio.current_time() - began < IMPATIENT
        assert (len(first.asked_datagrams), len(second.asked_datagrams)) == (1, 1)
        assert world.server.counters.forward_joined == 0


async def test_a_client_that_sends_its_query_again_counts_once_and_is_answered_once(clock: MockClock) -> None:
    gated = Gated()
    async with (
        faulty_upstream(gated.script, silence) as server,
        running(server.endpoint, forwarding=replace(TRUSTING, per_client=1)) as world,
        world.client() as client,
    ):
        for _ in range(50):
            await client.send(ASKED)
        await wait_until(lambda: world.server.counters.requests_udp == 50)
        assert len(world.forwarder) == 1
        gated.gate.set()
        assert await client.recv(512) == upstream.right(ASKED)
        await wait_until(lambda: len(world.forwarder) == 0)
        assert has_nothing(client)
        assert world.server.counters.forward_overload == 0


@pytest.mark.parametrize("attempts", [1, 2])
async def test_however_often_clients_ask_an_upstream_is_asked_so_often(clock: MockClock, attempts: int) -> None:
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream(silence, silence) as second,
        running(first.endpoint, second.endpoint, forwarding=replace(TRUSTING, attempts=attempts)) as world,
        world.client() as client,
    ):
        for turn in range(20):
            await client.send(ASKED)
            await client.send(under(ASKED, turn))
            await trio.sleep(0.06)
        while len(world.forwarder):  # noqa: ASYNC110  # the clock jumps from look to look
            await trio.sleep(TICK)
        assert [len(server.asked_datagrams) for server in (first, second)] == [attempts, attempts]


@pytest.mark.parametrize(
    ("later", "asked"), [pytest.param(IMPATIENT - 0.05, 1, id="soon"), pytest.param(IMPATIENT, 2, id="later")]
)
async def test_an_equal_query_under_another_id_has_the_next_upstream_asked_when_it_comes_late(
    clock: MockClock, later: float, asked: int
) -> None:
    """The retry of a stub resolver has a new ID: it must not depend on a query that is lost (CVE-2020-25686)."""
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream(silence, silence) as second,
        running(first.endpoint, second.endpoint) as world,
        world.client() as client,
    ):
        await client.send(ASKED)
        await first.wait_asked(datagrams=1)
        await trio.sleep(later)
        await client.send(under(ASKED, 7))
        await wait_until(lambda: len(world.forwarder) == 2)
        await trio.sleep(0.01)
        assert len(first.asked_datagrams + second.asked_datagrams) == asked


async def test_many_who_come_late_together_have_one_more_upstream_asked(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream(silence, silence) as second,
        running(first.endpoint, second.endpoint) as world,
        clients(world, 20) as asking,
    ):
        await asking[0].send(ASKED)
        await first.wait_asked(datagrams=1)
        await trio.sleep(IMPATIENT)
        for client in asking[1:]:
            await client.send(ASKED)
        await wait_until(lambda: len(world.forwarder) == 20)
        await trio.sleep(0.01)
        assert [len(server.asked_datagrams) for server in (first, second)] == [1, 1]


# --- several ports ---------------------------------------------------------------------------------------------------


class Ports:
    """A forwarder between a real upstream and ports that only record; nothing happens by itself."""

    def __init__(self, server: FaultyUpstream, poller: Poller, settings: ForwardSettings) -> None:
        settings = replace(settings, upstreams=(server.endpoint,))
        self.poller = poller
        self.counters = Counters()
        self.forwarder = Forwarder(settings=settings, poller=poller, counters=self.counters, tap=Tap())

    def ask(self, port: NotedPort, host: str = "192.0.2.1", *, ident: int = 1, message: bytes = ASKED) -> bytes | None:
        sender: Sender = ((host, 5353), (), host)
        return self.forwarder.start(Forward(scanned(under(message, ident)), shields=False), port, sender)

    async def wait_landed(self) -> None:
        while len(self.forwarder):
            await trio.lowlevel.checkpoint()
            self.poller.dispatch()
        self.forwarder.flush()


@contextmanager
def ports(server: FaultyUpstream, settings: ForwardSettings = TRUSTING) -> Iterator[Ports]:
    with Poller() as poller:
        made = Ports(server, poller, settings)
        with made.forwarder:
            yield made


async def test_clients_of_several_ports_share_a_flight_and_each_port_is_flushed_once() -> None:
    async with faulty_upstream() as server:
        with ports(server) as made:
            first, second = NotedPort(), NotedPort()
            for number in range(10):
                assert made.ask((first, second)[number % 2], f"192.0.2.{number}", ident=number) is None
            made.forwarder.flush()
            await made.wait_landed()
            for port, numbers in ((first, range(0, 10, 2)), (second, range(1, 10, 2))):
                assert port.posted == [
                    (upstream.right(under(ASKED, number)), ((f"192.0.2.{number}", 5353), (), f"192.0.2.{number}"))
                    for number in numbers
                ]
                assert port.flushed == 1
        assert len(server.asked_datagrams) == 1


async def test_one_sender_at_two_ports_is_two_who_wait() -> None:
    """Some C libraries ask all their servers from one socket with one ID, and two of these may be this server."""
    async with faulty_upstream() as server:
        with ports(server) as made:
            both = NotedPort(), NotedPort()
            for port in both:
                assert made.ask(port) is None
            made.forwarder.flush()
            await made.wait_landed()
            assert [[message for message, _ in port.posted] for port in both] == [[upstream.right(under(ASKED, 1))]] * 2


async def test_queries_of_a_batch_leave_together_from_one_port() -> None:
    async with faulty_upstream() as server:
        with ports(server) as made:
            for number in range(10):
                made.ask(NotedPort(), message=query(f"h{number}.example.net"))
            assert not server.asked_datagrams
            made.forwarder.flush()
            await made.wait_landed()
        assert len({asked.source for asked in server.asked_datagrams}) == 1
        assert len({asked.message[:2] for asked in server.asked_datagrams}) == 10


# --- failures that are remembered (RFC 9520) -------------------------------------------------------------------------


async def test_a_failure_is_remembered_for_a_second_and_no_upstream_is_asked(clock: MockClock) -> None:
    async with faulty_upstream(silence, silence) as server, running(server.endpoint) as world:
        assert extended_error(await world.ask(ASKED_EDNS)) == NO_REACHABLE_AUTHORITY
        failed = trio.current_time()
        asked = len(server.asked_datagrams + server.asked_streams)
        for number in range(5):
            reply = await world.ask(under(ASKED_EDNS, number))
            assert (reply[:2], upstream.rcode_of(reply)) == (number.to_bytes(2, "big"), upstream.SERVFAIL)
            assert extended_error(reply) == CACHED_ERROR
        assert trio.current_time() - failed < 0.5
        assert len(server.asked_datagrams + server.asked_streams) == asked
        assert len(world.forwarder) == 0
        server.datagrams = answer
        await trio.sleep(REMEMBER)
        assert await world.ask(ASKED_EDNS) == upstream.right(ASKED_EDNS)


async def test_a_failure_of_one_query_is_none_of_another(clock: MockClock) -> None:
    async with faulty_upstream(silence, silence) as server, running(server.endpoint) as world:
        await world.ask(ASKED)
        server.datagrams = answer
        for other in (ASKED_EDNS, query("www.example.net", AAAA), query("WWW.example.net")):
            assert await world.ask(other) == upstream.right(other)
        assert upstream.rcode_of(await world.ask(ASKED)) == upstream.SERVFAIL


@pytest.mark.parametrize("rcode", [upstream.SERVFAIL, upstream.REFUSED])
async def test_an_error_that_upstream_states_is_its_answer_and_not_remembered(clock: MockClock, rcode: int) -> None:
    script: Script = lambda asked: [upstream.right(asked, rcode=rcode, answers=0)]  # noqa: E731
    async with faulty_upstream(script) as server, running(server.endpoint) as world:
        for _ in range(3):
            assert upstream.rcode_of(await world.ask(ASKED)) == rcode
        assert len(server.asked_datagrams) == 3


async def test_a_failure_does_not_keep_a_health_probe_from_its_answer(clock: MockClock) -> None:
    async with faulty_upstream(silence, silence) as server, running(server.endpoint) as world:
        for _ in range(5):
            began = trio.current_time()
            assert upstream.rcode_of(await world.ask(query("", NS))) == upstream.SERVFAIL
            assert trio.current_time() - began <= PROBE_GIVE_UP + 2 * TICK


async def test_the_reply_to_a_health_probe_that_comes_after_its_end_is_a_stray(clock: MockClock) -> None:
    ended = trio.Event()
    script: Script = lambda asked: [Until(ended), upstream.right(asked)]  # noqa: E731
    async with faulty_upstream(script, silence) as server, running(server.endpoint) as world:
        assert upstream.rcode_of(await world.ask(query("", NS))) == upstream.SERVFAIL
        assert world.waiting == 0
        ended.set()
        await wait_until(lambda: world.server.counters.forward_mismatches == 1)
        server.datagrams = answer
        assert await world.ask(ASKED) == upstream.right(ASKED)


# --- caps ------------------------------------------------------------------------------------------------------------


async def test_a_client_that_lets_queries_pile_up_is_refused_and_others_are_served(clock: MockClock) -> None:
    """DNSBomb (CVE-2024-33655): thousands of replies in one pulse to an address that never asked."""
    wanted: Script = lambda asked: answer(asked) if ASKED[12:] in asked else []  # noqa: E731
    async with (
        faulty_upstream(wanted, silence) as server,
        running(server.endpoint, forwarding=replace(TRUSTING, per_client=5)) as world,
        world.client() as bomber,
    ):
        began = trio.current_time()
        for number in range(20):
            await bomber.send(query(f"h{number}.example.net", ident=number))
        refused = [await bomber.recv(512) for _ in range(15)]
        assert {upstream.rcode_of(reply) for reply in refused} == {upstream.REFUSED}
        assert [int.from_bytes(reply[:2], "big") for reply in refused] == list(range(5, 20))
        assert (len(world.forwarder), world.server.counters.forward_overload) == (5, 15)
        with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            await other.bind(("127.0.0.2", 0))
            await other.connect((world.endpoint.host, world.endpoint.port))
            await other.send(ASKED)
            assert await other.recv(512) == upstream.right(ASKED)
        assert {upstream.rcode_of(await bomber.recv(512)) for _ in range(5)} == {upstream.SERVFAIL}
        # No reply is older than this, so that no client can collect more replies than may wait at one time.
        assert trio.current_time() - began <= GIVE_UP + 2 * TICK


async def test_those_who_join_a_flight_count_as_those_who_have_one(clock: MockClock) -> None:
    async with faulty_upstream(silence, silence) as server:
        with ports(server, replace(TRUSTING, outstanding=6, per_client=4)) as made:
            port = NotedPort()
            admitted = {"192.0.2.1": 0, "192.0.2.2": 0}
            for number in range(10):
                for host in admitted:
                    refusal = made.ask(port, host, ident=number)
                    admitted[host] += refusal is None
                    if refusal is not None:
                        assert (refusal[:2], upstream.rcode_of(refusal)) == (
                            number.to_bytes(2, "big"),
                            upstream.REFUSED,
                        )
                        assert read_dnspython(refusal).question
            assert admitted == {"192.0.2.1": 3, "192.0.2.2": 3}
            assert made.counters.forward_overload == 14


async def test_random_names_of_a_dead_zone_leave_table_answers_and_memory_alone(clock: MockClock) -> None:
    """Water torture: as many queries as possible for names that no server answers."""
    async with (
        faulty_upstream(silence, silence) as server,
        running(server.endpoint, forwarding=replace(TRUSTING, outstanding=50)) as world,
        world.client() as client,
    ):
        codes: Counter[int] = Counter()
        for wave in range(6):
            for number in range(40):
                await client.send(query(f"w{wave}n{number}.example.net"))
            assert read_dnspython(await world.ask(query(OURS))).rcode == upstream.NOERROR
            assert len(world.forwarder) <= 50
        for _ in range(240):
            codes[upstream.rcode_of(await client.recv(512))] += 1
        assert codes == {upstream.SERVFAIL: 50, upstream.REFUSED: 190}
        await wait_until(lambda: len(world.forwarder) == 0)
        assert world.waiting == 0
        server.datagrams = answer
        assert await world.ask(ASKED) == upstream.right(ASKED)


async def test_a_retry_goes_on_when_it_is_due_however_many_came_before(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, silence) as first,
        faulty_upstream() as second,
        running(first.endpoint, second.endpoint) as world,
        world.client() as client,
    ):
        began = trio.current_time()
        for number in range(200):
            await client.send(query(f"h{number}.example.net", ident=number))
        seen = {int.from_bytes((await client.recv(512))[:2], "big") for _ in range(200)}
        assert seen == set(range(200))
        assert trio.current_time() - began <= RETRY + 3 * TICK
