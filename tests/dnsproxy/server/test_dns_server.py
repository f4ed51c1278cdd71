"""The whole server: what clients get at its sockets, what it does when full or faulty, and what it leaves behind."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import contextlib
import resource
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from dnsproxy.answers.decide import Outcome, decide
from dnsproxy.answers.quick import QuickAnswers
from dnsproxy.datagrams.batch import BatchPort
from dnsproxy.datagrams.open import open_port
from dnsproxy.datagrams.port import BATCH, ID, DatagramPort, Sender
from dnsproxy.server import datagram_server, responder
from dnsproxy.server.datagram_server import DatagramServer
from dnsproxy.server.dns_server import DnsServer
from sidecar.loop.poller import READABLE
from sidecar.sockets.listeners import listen_udp
from sidecar.values.endpoints import Endpoint
from tests.kit import upstream_replies as upstream
from tests.kit.dns_server import (
    OURS,
    OURS_AT,
    REPLY_SECONDS,
    TRUSTING,
    Running,
    open_descriptors,
    read_message,
    running,
    wait_until,
)
from tests.kit.faulty_upstream import (
    Pause,
    Script,
    Step,
    Until,
    answer,
    faulty_upstream,
    refusing_upstream,
    silence,
)
from tests.kit.messages import AAAA, NS, A, opt_record, query, read_both, read_dnspython, table_of
from tests.kit.single_port import SinglePort
from tests.kit.upstream_replies import framed

ASKED = query("www.example.net")
OUR_QUERY = query(OURS)
PROBE = query("", NS)
"""The health probe of CoreDNS's forward plugin."""

on_every_port = pytest.mark.parametrize(
    "port", [pytest.param(SinglePort, id="single"), pytest.param(BatchPort, id="batch")]
)


@pytest.fixture
def _no_descriptor_is_left() -> Iterator[None]:
    before = open_descriptors()
    yield
    assert open_descriptors() == before


def addresses(reply: bytes) -> set[str]:
    return {str(content) for _, _, _, content in read_both(reply).answers}


@on_every_port
async def test_a_name_of_ours_is_answered_and_another_one_forwarded(
    port: Callable[[socket.socket], DatagramPort],
) -> None:
    async with faulty_upstream() as there, running(there.endpoint, port=port) as world:
        assert addresses(await world.ask(OUR_QUERY)) == {OURS_AT}
        assert addresses(await world.ask_stream(OUR_QUERY)) == {OURS_AT}
        assert await world.ask(ASKED) == upstream.right(ASKED)
        assert await world.ask_stream(ASKED) == upstream.right(ASKED)
        counters = world.server.counters
        assert (counters.requests_udp, counters.requests_tcp) == (2, 2)
        assert (counters.table_by_rcode[0], counters.upstream_by_rcode[0]) == (2, 2)
        assert sum(counters.forward_seconds.counts) == 2


@on_every_port
async def test_a_burst_of_several_batches_of_every_kind_is_answered(
    port: Callable[[socket.socket], DatagramPort],
) -> None:
    kinds = [OUR_QUERY, ASKED, query(OURS, AAAA), b"", b"x" * 11, query(OURS, klass=3), upstream.right(OUR_QUERY)]
    async with faulty_upstream() as there, running(there.endpoint, port=port) as world, world.client() as client:
        for number in range(BATCH * 4):
            kind = kinds[number % len(kinds)]
            await client.send(number.to_bytes(2, "big") + kind[2:] if len(kind) > 2 else kind)
        expected = {number for number in range(BATCH * 4) if number % len(kinds) in (0, 1, 2, 5)}
        seen: set[int] = set()
        with trio.fail_after(REPLY_SECONDS):
            while seen != expected:
                seen.add(int.from_bytes((await client.recv(512))[:2], "big"))
        assert world.server.counters.requests_udp == BATCH * 4


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="no octets"),
        pytest.param(b"\0", id="one octet"),
        pytest.param(OUR_QUERY[:11], id="eleven octets"),
        pytest.param(upstream.right(OUR_QUERY), id="a response"),
        pytest.param(upstream.right(ASKED, rcode=upstream.FORMERR), id="an error response"),
        pytest.param(b"\0\0\xff" + bytes(9), id="a response with an opcode"),
        pytest.param(b"\xff" * 500, id="ones"),
    ],
)
async def test_what_must_not_be_answered_is_dropped_and_service_goes_on(message: bytes) -> None:
    async with faulty_upstream() as there, running(there.endpoint) as world, world.client() as client:
        await client.send(message)
        await client.send(OUR_QUERY)
        # Datagrams are answered in order: a reply to the first would arrive first.
        assert (await client.recv(512))[:2] == OUR_QUERY[:2]
        assert world.server.counters.dropped == 1
        assert not there.asked_datagrams


@pytest.mark.parametrize(
    ("message", "rcode"),
    [
        pytest.param(OUR_QUERY[:12], upstream.FORMERR, id="a header alone"),
        pytest.param(OUR_QUERY[:20], upstream.FORMERR, id="a cut question"),
        pytest.param(OUR_QUERY + b"tail", upstream.FORMERR, id="octets behind the message"),
        pytest.param(OUR_QUERY[:2] + b"\x28" + OUR_QUERY[3:], upstream.NOTIMP, id="UPDATE"),
        pytest.param(query(OURS, klass=3), upstream.REFUSED, id="class CH"),
        pytest.param(bytes(5000), upstream.FORMERR, id="more octets than are taken"),
    ],
)
async def test_what_cannot_be_answered_gets_an_error_over_both_transports(message: bytes, rcode: int) -> None:
    async with running() as world:
        for reply in (await world.ask(message), await world.ask_stream(message)):
            assert (reply[:2], upstream.rcode_of(reply)) == (message[:2], rcode)
        assert world.server.counters.own_by_rcode[rcode] == 2


class AgedPort(BatchPort):
    """A port that reports ages of its own, in the order in which it is asked."""

    ages: ClassVar[list[float]] = []

    def age(self) -> float:
        return self.ages.pop(0) if self.ages else 0.0


@pytest.mark.parametrize(
    ("gap", "ages", "forwarded"),
    [
        pytest.param(9.0, [9.0, 8.0, 2.1, 1.9], [3, 4], id="those of the last two seconds"),
        pytest.param(9.0, [0.1], [0, 1, 2, 3, 4], id="a quiet time, no hang"),
        pytest.param(9.0, [9.0, 8.0, 7.0, 6.0, 5.0], [], id="all are stale"),
        pytest.param(1.9, [1.9, 1.8], [0, 1, 2, 3, 4], id="a short hang"),
        pytest.param(9.0, [3600.0], [0, 1, 2, 3, 4], id="the clock was set forward"),
        pytest.param(9.0, [-3600.0], [0, 1, 2, 3, 4], id="the clock was set back"),
    ],
)
async def test_after_a_hang_queries_whose_clients_asked_elsewhere_are_not_forwarded(
    gap: float, ages: list[float], forwarded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(datagram_server, "time", SimpleNamespace(perf_counter=lambda: now))
    monkeypatch.setattr(AgedPort, "ages", [])
    async with faulty_upstream() as there, running(there.endpoint, port=AgedPort) as world, world.client() as client:
        assert addresses(await world.ask(OUR_QUERY)) == {OURS_AT}
        now = gap
        AgedPort.ages.extend(ages)
        asked = [query(f"n{number}.example.net", ident=number) for number in range(5)]
        for message in (*asked, *(query(OURS, ident=number) for number in range(100, 105))):
            client._sock.send(message)  # type: ignore[attr-defined]  # the server must not run between them
        replies = {(await client.recv(512))[1] for _ in range(5 + len(forwarded))}
        assert replies == {*forwarded, *range(100, 105)}
        assert world.server.counters.forward_stale == 5 - len(forwarded)


async def test_a_hang_amid_a_batch_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(datagram_server, "time", SimpleNamespace(perf_counter=lambda: now))
    monkeypatch.setattr(AgedPort, "ages", [9.0, 8.0, 0.1])

    class HangingPort(AgedPort):
        """Hangs for 9 s when it sends its first answers."""

        def send(self, bodies: Sequence[bytes | None]) -> None:
            nonlocal now
            if not now:
                now = 9.0
                for message in asked:
                    client._sock.send(message)  # type: ignore[attr-defined]  # the server must not run between them
            super().send(bodies)

    asked = [query(f"n{number}.example.net", ident=number) for number in range(3)]
    async with faulty_upstream() as there, running(there.endpoint, port=HangingPort) as world:
        async with world.client() as client:
            await client.send(OUR_QUERY)
            replies = [await client.recv(512) for _ in range(2)]
        assert [reply[1] for reply in replies] == [OUR_QUERY[1], 2]
        assert world.server.counters.forward_stale == 2


REFLECTORS = (0, 7, 9, 13, 17, 19, 37)
"""Port 0, and echo, discard, daytime, quote of the day, character generator, time: they answer every datagram."""


def from_source_port(number: int) -> Callable[[socket.socket], DatagramPort]:
    """A port that receives every datagram from this source port, which an attacker can forge."""

    class SpoofedPort(BatchPort):
        def source_port(self, sender: Sender) -> int:
            del sender
            return number

    return SpoofedPort


ERRORS = {
    "FORMERR": OUR_QUERY[:20],
    "NOTIMP": OUR_QUERY[:2] + b"\x28" + OUR_QUERY[3:],
    "REFUSED": query(OURS, klass=3),
    "BADVERS": query(OURS, additional=(opt_record(version=1),)),
    "what a character generator says": bytes(range(0x20, 0x68)) + b"\r\n",
}


@pytest.mark.parametrize("number", REFLECTORS)
async def test_a_service_that_answers_whatever_it_is_sent_gets_no_error_of_ours(number: int) -> None:
    """Two servers that answer each other's errors never stop (CVE-2024-2169)."""
    async with running(port=from_source_port(number)) as world, world.client() as client:
        for times, (name, message) in enumerate(ERRORS.items(), start=1):
            for _ in range(3):
                await client.send(message)
            await client.send(OUR_QUERY)
            assert addresses(await client.recv(512)) == {OURS_AT}, name
            assert world.server.counters.dropped == 3 * times, name
        assert sum(world.server.counters.own_by_rcode) == 0


@pytest.mark.parametrize("number", [1, 8, 20, 53, 1024, 65535])
async def test_other_source_ports_get_their_errors(number: int) -> None:
    async with running(port=from_source_port(number)) as world:
        assert upstream.rcode_of(await world.ask(query(OURS, klass=3))) == upstream.REFUSED


@pytest.mark.parametrize("number", REFLECTORS)
async def test_a_query_from_such_a_port_that_is_one_is_answered(number: int) -> None:
    async with faulty_upstream() as there, running(there.endpoint, port=from_source_port(number)) as world:
        assert addresses(await world.ask(OUR_QUERY)) == {OURS_AT}
        assert await world.ask(ASKED) == upstream.right(ASKED)


async def test_a_flood_makes_no_tasks_and_is_over_when_it_is_over(clock: MockClock) -> None:
    """Excess datagrams are lost in the bounded queue of the kernel, and nowhere else.

    No time passes during the flood: on a loaded machine it lasts so long that silence would start tasks of TCP.
    """
    with refusing_upstream() as refusing:
        async with running(refusing) as world, world.client() as client:
            await trio.testing.wait_all_tasks_blocked()
            before = trio.lowlevel.current_statistics().tasks_living
            most = before
            for wave in range(20):
                for number in range(250):
                    client._sock.send(OUR_QUERY)  # type: ignore[attr-defined]  # faster than the server can run
                    client._sock.send(query(f"w{wave}n{number}.example.net"))  # type: ignore[attr-defined]
                await trio.lowlevel.checkpoint()
                most = max(most, trio.lowlevel.current_statistics().tasks_living)
            assert most <= before
            await wait_until(lambda: world.server.outstanding == 0)
            # The rest of the flood in the queue of the kernel would block the next query.
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert addresses(await world.ask(OUR_QUERY)) == {OURS_AT}
            assert world.waiting == 0


async def test_beyond_the_cap_queries_are_refused_and_table_answers_go_on() -> None:
    gate = trio.Event()
    script: Script = lambda asked: [Until(gate), upstream.right(asked)]  # noqa: E731
    async with (
        faulty_upstream(script, script) as there,
        running(there.endpoint, forwarding=replace(TRUSTING, outstanding=8)) as world,
        world.client() as client,
        await world.connect() as stream,
    ):
        for number in range(3):
            await stream.send_all(framed(query(f"t{number}.example.net", ident=number)))
        await there.wait_asked(streams=3)
        for number in range(8):
            await client.send(query(f"u{number}.example.net", ident=number))
        refused = [await client.recv(512) for _ in range(3)]
        assert [(reply[:2], upstream.rcode_of(reply)) for reply in refused] == [
            (number.to_bytes(2, "big"), upstream.REFUSED) for number in range(5, 8)
        ]
        await stream.send_all(framed(ASKED))
        assert upstream.rcode_of(await read_message(stream)) == upstream.REFUSED
        assert world.server.counters.forward_overload == 4
        assert world.server.outstanding == 8
        assert addresses(await world.ask(OUR_QUERY)) == {OURS_AT}
        gate.set()
        assert {(await client.recv(512))[:2] for _ in range(5)} == {number.to_bytes(2, "big") for number in range(5)}
        assert {(await read_message(stream))[:2] for _ in range(3)} == {bytes([0, number]) for number in range(3)}
        assert await world.ask(ASKED) == upstream.right(ASKED)


async def test_a_bug_met_by_one_query_is_servfail_and_service_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_once(message: bytes, *arguments: Any, **keywords: Any) -> Outcome:
        if b"broken" in message:
            raise RuntimeError("a bug")
        return decide(message, *arguments, **keywords)

    monkeypatch.setattr(responder, "decide", fail_once)
    broken = query("broken.example.org")
    async with running() as world, world.client() as client:
        for message in (OUR_QUERY, broken, OUR_QUERY):
            await client.send(message)
        codes = [read_dnspython(await client.recv(512)).rcode for _ in range(3)]
        assert codes == [upstream.NOERROR, upstream.SERVFAIL, upstream.NOERROR]
        assert world.server.counters.failures == 1
        assert read_dnspython(await world.ask_stream(broken)).rcode == upstream.SERVFAIL


async def test_a_bug_in_the_quick_answers_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_quick: QuickAnswers, _bodies: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(QuickAnswers, "answer", fail)
    async with faulty_upstream() as there, running(there.endpoint) as world:
        for _ in range(2):
            assert addresses(await world.ask(OUR_QUERY)) == {OURS_AT}
        assert await world.ask(ASKED) == upstream.right(ASKED)
        counters = world.server.counters
        assert (counters.failures, counters.requests_udp, counters.table_by_rcode[0]) == (3, 3, 2)


async def test_the_counters_tell_quick_answers_from_others() -> None:
    kinds = [OUR_QUERY, query(OURS, AAAA), query(OURS, klass=3), OUR_QUERY[:20], upstream.right(OUR_QUERY), b""]
    async with running() as world, world.client() as client:
        for message in kinds * 3:
            await client.send(message)
        for _ in range(4 * 3):
            await client.recv(512)
        counters = world.server.counters
        await wait_until(lambda: counters.requests_udp == 6 * 3)
        assert counters.table_by_rcode[upstream.NOERROR] == 2 * 3
        assert (counters.own_by_rcode[upstream.REFUSED], counters.own_by_rcode[upstream.FORMERR]) == (3, 3)
        assert counters.dropped == 2 * 3
        assert sum(counters.table_seconds.counts) == 4 * 3


async def test_a_table_swapped_while_serving_gives_old_or_new_answers_and_nothing_else() -> None:
    tables = [table_of(f"{OURS} 192.0.2.{number}") for number in range(1, 5)]
    async with running(table=tables[0]) as world, world.client() as client:
        seen = []
        for turn in range(40):
            world.server.table = tables[turn % 4]
            for _ in range(5):
                await client.send(OUR_QUERY)
            seen += [addresses(await client.recv(512)) for _ in range(5)]
        assert seen == [{f"192.0.2.{turn % 4 + 1}"} for turn in range(40) for _ in range(5)]


async def test_a_name_that_leaves_the_table_is_forwarded_and_one_that_enters_is_not() -> None:
    async with faulty_upstream() as there, running(there.endpoint) as world:
        world.server.table = table_of("www.example.net 192.0.2.1")
        assert await world.ask(OUR_QUERY) == upstream.right(OUR_QUERY)
        assert addresses(await world.ask(ASKED)) == {"192.0.2.1"}


@pytest.mark.parametrize("streams", [pytest.param(silence, id="TCP silent"), pytest.param(answer, id="TCP well")])
async def test_a_health_probe_is_answered_within_a_second_though_every_upstream_is_silent(
    clock: MockClock, streams: Script
) -> None:
    async with faulty_upstream(silence, streams) as there, running(there.endpoint) as world:
        began = clock.current_time()
        reply = read_dnspython(await world.ask(PROBE))
        assert clock.current_time() - began < 0.9
        assert (reply.rcode, reply.question) == (upstream.SERVFAIL, ((b"\0", NS, 1),))


async def test_a_health_probe_is_answered_at_once_where_every_upstream_refuses() -> None:
    with refusing_upstream() as refusing:
        async with running(refusing) as world:
            assert read_dnspython(await world.ask(PROBE)).rcode == upstream.SERVFAIL


@pytest.mark.usefixtures("_no_descriptor_is_left")
async def test_after_a_storm_of_every_fault_nothing_is_left_waiting() -> None:
    turns = iter(range(10**6))

    def storm(asked: bytes) -> list[Step]:
        right = upstream.right(asked)
        kinds: list[list[Step]] = [
            [],
            [right],
            [right, right],
            [upstream.wrong_id(asked), right],
            [upstream.other_question(asked)],
            [b"", asked[:5], right],
            [Pause(0.2), right],
            [Pause(0.8), right],
        ]
        return kinds[next(turns) % 8]

    async with faulty_upstream(storm, storm) as there:
        with refusing_upstream() as refusing:
            async with running(refusing, there.endpoint) as world, world.client() as client:
                for number in range(200):
                    await client.send(query(f"h{number}.example.net", ident=number))
                async with trio.open_nursery() as nursery:
                    for number in range(30):
                        nursery.start_soon(world.ask_stream, query(f"t{number}.example.net"))
                seen = {(await client.recv(512))[:2] for _ in range(200)}
                assert seen == {number.to_bytes(2, "big") for number in range(200)}
                await wait_until(lambda: world.server.outstanding == 0)
                assert world.waiting == 0
                assert world.server.counters.failures == 0


@pytest.mark.usefixtures("_no_descriptor_is_left")
async def test_a_server_that_is_cancelled_in_the_middle_closes_everything() -> None:
    async with (
        faulty_upstream(silence, silence) as there,
        running(there.endpoint) as world,
        world.client() as client,
        await world.connect() as stream,
    ):
        for number in range(100):
            await client.send(query(f"h{number}.example.net", ident=number))
        await stream.send_all(framed(ASKED))
        await there.wait_asked(datagrams=100, streams=1)
        assert world.server.outstanding == 101


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Only this many more descriptors can be opened."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        # The limit is on descriptor numbers, so all numbers below it are used except for the spare ones.
        spare = [stack.enter_context(socket.socket()) for _ in range(count)]
        last = stack.enter_context(socket.socket())
        while last.fileno() + 1 < open_descriptors():
            last = stack.enter_context(socket.socket())
        for sock in spare:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (last.fileno() + 1, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_with_few_descriptors_left_every_query_is_still_answered() -> None:
    async with faulty_upstream() as there, running(there.endpoint) as world, world.client() as client:
        with descriptors_left(3):
            for number in range(20):
                await client.send(query(f"h{number}.example.net", ident=number))
                await client.send(OUR_QUERY)
            codes = [upstream.rcode_of(await client.recv(512)) for _ in range(40)]
        assert codes == [upstream.NOERROR] * 40


async def test_with_no_descriptor_left_forwarding_fails_by_the_query_and_recovers() -> None:
    async with faulty_upstream() as there, running(there.endpoint) as world, world.client() as client:
        with descriptors_left(0):
            await client.send(query("failing.example.net"))
            assert upstream.rcode_of(await client.recv(512)) == upstream.SERVFAIL
            await client.send(OUR_QUERY)
            ours = await client.recv(512)
        assert addresses(ours) == {OURS_AT}
        assert await world.ask(ASKED) == upstream.right(ASKED)
        assert await world.ask_stream(ASKED) == upstream.right(ASKED)


async def test_draining_waits_for_forwarded_queries_over_both_transports() -> None:
    gate = trio.Event()
    script: Script = lambda asked: [Until(gate), upstream.right(asked)]  # noqa: E731
    async with (
        faulty_upstream(script, script) as there,
        running(there.endpoint) as world,
        world.client() as client,
        await world.connect() as stream,
        trio.open_nursery() as nursery,
    ):
        await client.send(ASKED)
        await stream.send_all(framed(ASKED))
        await there.wait_asked(datagrams=1, streams=1)
        drained = trio.Event()
        nursery.start_soon(drain, world.server, drained)
        await trio.testing.wait_all_tasks_blocked()
        # UDP is served to the end: a client that still asks must not run into a timeout.
        assert addresses(await world.ask(OUR_QUERY)) == {OURS_AT}
        assert not drained.is_set()
        gate.set()
        assert await client.recv(512) == upstream.right(ASKED)
        assert await read_message(stream) == upstream.right(ASKED)
        assert await read_message(stream) == b""
        await stream.aclose()
        await drained.wait()


@asynccontextmanager
async def datagrams_alone(*upstreams: Endpoint, own: int) -> AsyncIterator[tuple[DnsServer, socket.socket]]:
    """A server without TCP, so that nothing else of its drain gives the other tasks a turn."""
    server = DnsServer(forwarding=replace(TRUSTING, upstreams=upstreams))
    server.table = table_of(f"{OURS} {OURS_AT}")
    with listen_udp(Endpoint("127.0.0.1", 0), flag="test") as udp:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(server.run, [open_port(udp)], [], own=own))
            await trio.testing.wait_all_tasks_blocked()
            yield server, udp
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("asked", [OUR_QUERY, ASKED], ids=["from the table", "forwarded"])
async def test_draining_answers_the_datagrams_that_only_the_kernel_has_accepted_and_refuses_more(asked: bytes) -> None:
    async with faulty_upstream() as there, datagrams_alone(there.endpoint, own=1) as (server, udp):
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(3 * BATCH)]
            # No task of the server runs between these and the drain.
            for one in clients:
                one.connect(udp.getsockname())
                one.send(asked)
            await server.drain()
            assert [one.recv(512, socket.MSG_DONTWAIT)[:2] for one in clients] == [asked[:2]] * len(clients)
            for one in clients:
                one.send(asked)
                with pytest.raises(ConnectionRefusedError):
                    one.recv(512, socket.MSG_DONTWAIT)


async def test_datagrams_that_come_after_the_drain_stay_for_the_process_that_has_the_socket_too() -> None:
    async with datagrams_alone(own=0) as (server, udp):
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            await server.drain()
            client.sendto(OUR_QUERY, udp.getsockname())
            await trio.testing.wait_all_tasks_blocked()
            assert udp.recv(512) == OUR_QUERY


async def drain(dns: DnsServer, drained: trio.Event) -> None:
    await dns.drain()
    drained.set()


async def test_draining_waits_for_datagrams_alone_also_after_earlier_ones_were_answered() -> None:
    gate = trio.Event()
    async with faulty_upstream() as there, running(there.endpoint) as world, world.client() as client:
        assert await world.ask(ASKED) == upstream.right(ASKED)
        there.datagrams = lambda asked: [Until(gate), upstream.right(asked)]
        await client.send(ASKED)
        await there.wait_asked(datagrams=2)
        async with trio.open_nursery() as nursery:
            both = [trio.Event(), trio.Event()]
            for drained in both:
                nursery.start_soon(drain, world.server, drained)
            await trio.testing.wait_all_tasks_blocked()
            assert not any(drained.is_set() for drained in both)
            gate.set()
            assert await client.recv(512) == upstream.right(ASKED)


async def test_draining_twice_and_with_nothing_under_way_ends_at_once(clock: MockClock) -> None:
    async with running() as world:
        began = clock.current_time()
        for _ in range(2):
            await world.server.drain()
        assert clock.current_time() == began
        assert (world.server.outstanding, world.server.counters.tcp_connections) == (0, 0)


async def test_a_client_that_left_before_its_reply_does_no_harm() -> None:
    gate = trio.Event()
    async with (
        faulty_upstream(lambda asked: [Until(gate), upstream.right(asked)]) as there,
        running(there.endpoint) as world,
    ):
        for number in range(20):
            async with world.client() as client:
                await client.send(query(f"h{number}.example.net"))
        await there.wait_asked(datagrams=20)
        gate.set()
        await wait_until(lambda: len(world.forwarder) == 0)
        assert addresses(await world.ask(OUR_QUERY)) == {OURS_AT}
        assert await world.ask(ASKED) == upstream.right(ASKED)


async def test_one_queue_that_never_runs_dry_leaves_the_others_their_turn() -> None:
    async with running() as world, trio.open_nursery() as nursery:
        nursery.start_soon(flood, world)
        for _ in range(20):
            assert addresses(await world.ask_stream(OUR_QUERY)) == {OURS_AT}
        nursery.cancel_scope.cancel()


async def flood(world: Running) -> None:
    async with world.client() as client:
        while True:
            for _ in range(BATCH):
                await client.send(OUR_QUERY)


@pytest.mark.parametrize(
    ("seconds", "batches"),
    [
        pytest.param(0.0003, 16, id="from the table"),
        pytest.param(0.003, 2, id="forwarded"),
        pytest.param(1.0, 1, id="on a machine without a processor to spare"),
    ],
)
async def test_a_queue_that_never_runs_dry_has_the_less_batches_the_longer_they_take(
    seconds: float, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turns of a TCP client and of a health check are behind them."""
    now = 0.0
    monkeypatch.setattr(datagram_server, "time", SimpleNamespace(perf_counter=lambda: now))
    taken: list[int] = []

    class EndlessPort(SinglePort):
        def receive(self, limit: int = BATCH) -> list[bytes]:
            taken.append(limit)
            self._messages = [OUR_QUERY] * limit
            return [OUR_QUERY[ID:]] * limit

        def send(self, bodies: Sequence[bytes | None]) -> None:
            nonlocal now
            del bodies
            now += seconds

    async with running() as world:
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            DatagramServer(world.server, EndlessPort(sock), world.forwarder, unread_since=now).handle(READABLE)
    assert taken == [BATCH] * batches


@pytest.mark.parametrize("size", [512, 1232, 4096])
async def test_an_answer_that_is_too_large_over_udp_is_whole_over_tcp(size: int) -> None:
    many = [f"192.0.2.{number}" for number in range(1, 200)]
    asked = query(OURS, A, additional=(opt_record(size),))
    async with running(table=table_of(f"{OURS} {' '.join(many)}")) as world:
        reply = await world.ask(asked)
        assert upstream.is_truncated(reply)
        assert len(reply) <= min(size, 1232)
        assert addresses(await world.ask_stream(asked)) == set(many)
