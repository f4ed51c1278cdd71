"""DNS over TCP on real connections: framing, order, limits and the end of a connection, which is FIN and never RST."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import contextlib
import errno
import gc
import itertools
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Forward
from dnsproxy.dns.wire import Query
from dnsproxy.server import stream_connection, stream_server
from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.server.stream_server import StreamServer
from dnsproxy.server.zone_service import Elsewhere
from tests.kit import upstream_replies as upstream
from tests.kit.dns_server import (
    OURS,
    REPLY_SECONDS,
    open_descriptors,
    read_message,
    running,
    wait_until,
)
from tests.kit.faulty_upstream import faulty_upstream
from tests.kit.messages import opt_record, option, query, read_dnspython
from tests.kit.upstream_replies import framed

SHORT = 0.1
"""A limit that a test waits for."""


class Service:
    """Answers b"now..." at once and b"later..." when the test allows it; b"bad" is not DNS, b"bug" raises.

    Another process answers b"other..."; that one wants the connection for b"otherwise...".
    """

    def __init__(self) -> None:
        self.gates: dict[bytes, trio.Event] = {}
        self.forwarding = 0
        self.clients: set[str] = set()
        self.handed: list[tuple[trio.SocketStream, bytes]] = []

    async def hand_over(self, stream: trio.SocketStream, received: bytes) -> None:
        assert not self.forwarding
        self.handed.append((stream, received))
        # The other process has its own descriptor of the connection.
        await stream.send_all(framed(b"from the other process"))

    async def ask_other(self, message: bytes) -> bytes | None:
        assert not self.forwarding
        return None if message.startswith(b"otherwise") else b"re:" + message

    def respond_stream(
        self,
        message: bytes,
        *,
        client: str,  # noqa: ARG002
        port: int,  # noqa: ARG002
    ) -> bytes | Forward | Elsewhere | None:
        if message.startswith(b"other"):
            return Elsewhere(partial(self.ask_other, message))
        if message.startswith(b"later"):
            self.gates.setdefault(message, trio.Event())
            return Forward(Query(message, b"", 1, 1, 12, None), shields=False)
        if message == b"bug":
            raise RuntimeError("a bug")
        if message.startswith(b"huge"):
            return bytes(65_535)
        return b"re:" + message if message.startswith(b"now") else None

    async def forward_stream(self, forward: Forward, *, client: str, port: int) -> bytes:  # noqa: ARG002
        self.forwarding += 1
        self.clients.add(client)
        try:
            await self.gates[forward.query.message].wait()
        finally:
            self.forwarding -= 1
        return b"re:" + forward.query.message


class World:
    def __init__(self, limits: StreamLimits, nursery: trio.Nursery, listener: trio.SocketListener) -> None:
        self.service = Service()
        self.counters = Counters()
        self.server = StreamServer(self.service, counters=self.counters, limits=limits)
        self.nursery = nursery
        self.listener = listener
        self.address = listener.socket.getsockname()

    async def connect(self, source: str = "127.0.0.1") -> trio.SocketStream:
        sock = trio.socket.socket()
        # The largest replies must not all fit into the buffers of the kernel for a client that does not read.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await sock.bind((source, 0))
        await sock.connect(self.address)
        return trio.SocketStream(sock)

    @property
    def connections(self) -> int:
        return len(self.server._connections)

    async def assert_serves(self) -> None:
        """A new client is served."""
        async with await self.connect() as stream:
            await stream.send_all(framed(b"now"))
            assert await read(stream) == b"re:now"


@asynccontextmanager
async def served(listener_is: str = "own", /, **limits: float) -> AsyncIterator[World]:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listeners[0], trio.open_nursery() as nursery:
        world = World(StreamLimits(**limits), nursery, listeners[0])  # type: ignore[arg-type]  # some are counts
        nursery.start_soon(partial(world.server.run, listeners[0], own=listener_is == "own"))
        yield world
        nursery.cancel_scope.cancel()


async def read(stream: trio.SocketStream) -> bytes:
    with trio.fail_after(REPLY_SECONDS):
        return await read_message(stream)


async def assert_ended_with_fin(stream: trio.SocketStream) -> None:
    """FIN without further octets; a reset would raise."""
    with trio.fail_after(REPLY_SECONDS):
        assert await stream.receive_some() == b""


async def assert_ended(stream: trio.SocketStream) -> None:
    """No further octets; a reset is allowed."""
    with trio.fail_after(REPLY_SECONDS), contextlib.suppress(trio.BrokenResourceError):
        assert await stream.receive_some() == b""


def reset(stream: trio.SocketStream) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    stream.socket.close()


@pytest.fixture
def descriptors() -> Iterator[None]:
    """The test leaves no descriptor behind."""
    before = open_descriptors()
    yield
    assert open_descriptors() == before


def test_an_idle_connection_outlives_the_ten_seconds_that_coredns_reuses_it_for() -> None:
    assert StreamLimits().idle > 10


@pytest.mark.parametrize("cut", range(1, 12))
async def test_a_message_may_be_cut_anywhere(cut: int) -> None:
    octets = framed(b"now a") + framed(b"now b")
    async with served() as world, await world.connect() as stream:
        await stream.send_all(octets[:cut])
        await trio.testing.wait_all_tasks_blocked(0.001)
        await stream.send_all(octets[cut:])
        assert [await read(stream), await read(stream)] == [b"re:now a", b"re:now b"]


async def test_a_message_may_come_one_octet_at_a_time() -> None:
    async with served() as world, await world.connect() as stream:
        for octet in framed(b"now, slowly"):
            await stream.send_all(bytes([octet]))
            await trio.testing.wait_all_tasks_blocked(0.001)
        assert await read(stream) == b"re:now, slowly"


async def test_length_and_message_leave_in_one_segment() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"now"))
        assert await stream.receive_some() == framed(b"re:now")


async def test_replies_to_what_came_together_leave_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_connection, "perf_counter", lambda: 0.0)
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"now") * 10)
        assert await stream.receive_some() == framed(b"re:now") * 10


async def test_of_flooding_connections_only_a_few_work_before_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Every check finds the slice over: a turn is one message.
    monkeypatch.setattr(stream_connection, "perf_counter", itertools.count().__next__)
    monkeypatch.setattr(stream_server, "TURNS", 2)
    async with served() as world:
        turns = 0
        answered_in: Counter[int] = Counter()
        respond = world.service.respond_stream

        def respond_and_note(message: bytes, *, client: str, port: int) -> bytes | Forward | Elsewhere | None:
            answered_in[turns] += 1
            return respond(message, client=client, port=port)

        monkeypatch.setattr(world.service, "respond_stream", respond_and_note)
        streams = [await world.connect() for _ in range(5)]
        for stream in streams:
            await stream.send_all(framed(b"now") * 20)
        while answered_in.total() < 100:
            turns += 1
            await trio.lowlevel.checkpoint()
        del answered_in[0]  # while they were still being sent
        # Those of two turns, because trio runs the tasks of one turn in any order.
        assert max(answered_in.values()) <= 2 * 2
        for stream in streams:
            assert [await read(stream) for _ in range(20)] == [b"re:now"] * 20
            await stream.aclose()


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"\0\0", id="length 0"),
        pytest.param(framed(b"x"), id="one octet"),
        pytest.param(framed(b"bad message"), id="eleven octets"),
        pytest.param(b"\0\1" + b"now", id="a length shorter than the message"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 1000, id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01" + bytes(1000), id="TLS"),
        pytest.param(bytes(60_000), id="zeros"),
        pytest.param(framed(b"bad") + framed(b"now"), id="garbage and then a good query"),
    ],
)
async def test_what_is_not_dns_closes_its_connection_alone(clock: MockClock, octets: bytes) -> None:
    async with served(message=SHORT, closing=SHORT) as world, await world.connect() as stream:
        other = await world.connect()
        await other.send_all(framed(b"now"))
        await stream.send_all(octets)
        await assert_ended(stream)
        await other.send_all(framed(b"now"))
        assert [await read(other), await read(other)] == [b"re:now"] * 2
        await wait_until(lambda: world.connections == 1)
        await other.aclose()


async def test_what_came_before_garbage_is_answered() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"now a") + framed(b"now b") + framed(b"bad") + framed(b"now c"))
        assert [await read(stream), await read(stream)] == [b"re:now a", b"re:now b"]
        await assert_ended(stream)


async def test_not_one_message_behind_garbage_is_looked_at() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"bad") + framed(b"later") * 1000)
        await assert_ended(stream)
        assert world.service.gates == {}


@pytest.mark.parametrize(
    "octets", [pytest.param(b"\0", id="half a length"), pytest.param(b"\0\x20now", id="a cut message")]
)
async def test_a_message_that_does_not_come_to_its_end_is_given_up_at_the_deadline(octets: bytes) -> None:
    async with served(message=SHORT, closing=SHORT) as world, await world.connect() as stream:
        await stream.send_all(octets)
        await assert_ended_with_fin(stream)
        await wait_until(lambda: world.connections == 0)


async def test_a_message_that_drips_is_given_up_at_one_deadline_for_all_of_it(clock: MockClock) -> None:
    async with (
        served(message=SHORT * 2, closing=SHORT) as world,
        await world.connect() as stream,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(drip, stream)
        await assert_ended_with_fin(stream)
        await wait_until(lambda: world.connections == 0)
        nursery.cancel_scope.cancel()


async def drip(stream: trio.SocketStream) -> None:
    with contextlib.suppress(trio.BrokenResourceError):
        for octet in framed(b"now" * 1000):
            await stream.send_all(bytes([octet]))
            await trio.sleep(SHORT / 4)


async def test_a_silent_client_is_closed_and_others_are_served_meanwhile(clock: MockClock) -> None:
    async with served(message=SHORT, per_client=8) as world:
        silent = [await world.connect() for _ in range(5)]
        await world.assert_serves()
        for stream in silent:
            await assert_ended_with_fin(stream)
            await stream.aclose()
        await wait_until(lambda: world.connections == 0)


async def test_an_idle_connection_is_closed_with_fin() -> None:
    async with served(idle=SHORT) as world, await world.connect() as stream:
        await stream.send_all(framed(b"now"))
        assert await read(stream) == b"re:now"
        await assert_ended_with_fin(stream)


async def test_a_client_that_sends_on_while_we_close_gets_no_reset() -> None:
    async with served(idle=SHORT) as world, await world.connect() as stream:
        await stream.send_all(framed(b"now"))
        assert await read(stream) == b"re:now"
        await assert_ended_with_fin(stream)
        for _ in range(3):
            # A reset caused by the previous send would break this one.
            await stream.send_all(framed(b"now"))
            await trio.testing.wait_all_tasks_blocked(0.005)
        assert await stream.receive_some() == b""


async def test_the_idle_time_counts_from_the_last_reply(clock: MockClock) -> None:
    async with served(idle=SHORT * 3) as world, await world.connect() as stream:
        await stream.send_all(framed(b"later"))
        await wait_until(lambda: world.service.forwarding == 1)
        await trio.sleep(SHORT * 2)
        world.service.gates[b"later"].set()
        assert await read(stream) == b"re:later"
        replied = clock.current_time()
        await assert_ended_with_fin(stream)
        assert clock.current_time() - replied == pytest.approx(SHORT * 3)


async def test_a_query_keeps_its_answer_though_the_connection_went_idle_meanwhile() -> None:
    async with served(idle=SHORT) as world, await world.connect() as stream:
        await stream.send_all(framed(b"later"))
        await wait_until(lambda: world.service.forwarding == 1)
        await trio.sleep(SHORT * 2)
        world.service.gates[b"later"].set()
        assert await read(stream) == b"re:later"
        await assert_ended_with_fin(stream)


async def test_fast_queries_overtake_slow_ones_in_one_segment() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"later a") + framed(b"later b") + framed(b"now"))
        assert await read(stream) == b"re:now"
        for name in (b"later b", b"later a"):
            world.service.gates[name].set()
            assert await read(stream) == b"re:" + name


async def test_a_query_is_forwarded_in_the_name_of_its_client_whatever_its_connection() -> None:
    async with served() as world:
        for _ in range(2):
            async with await world.connect() as stream:
                await stream.send_all(framed(b"later") + framed(b"now"))
                assert await read(stream) == b"re:now"
    assert world.service.clients == {world.address[0]}


async def test_the_same_query_twice_has_two_answers() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"later") * 2 + framed(b"now") * 2)
        assert [await read(stream), await read(stream)] == [b"re:now"] * 2
        world.service.gates[b"later"].set()
        assert [await read(stream), await read(stream)] == [b"re:later"] * 2


async def test_only_so_many_queries_of_one_connection_are_under_way() -> None:
    async with served(pipelined=4) as world, await world.connect() as stream:
        await stream.send_all(framed(b"later") * 20)
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert world.service.forwarding == 4
        world.service.gates[b"later"].set()
        assert [await read(stream) for _ in range(20)] == [b"re:later"] * 20


async def test_a_client_that_half_closes_is_answered_and_then_closed() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"later") + framed(b"now a") + framed(b"now b"))
        await stream.send_eof()
        assert [await read(stream), await read(stream)] == [b"re:now a", b"re:now b"]
        world.service.gates[b"later"].set()
        assert await read(stream) == b"re:later"
        await assert_ended_with_fin(stream)


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize("abrupt", [pytest.param(True, id="RST"), pytest.param(False, id="FIN both ways")])
async def test_a_client_that_vanishes_with_queries_under_way_frees_its_place(abrupt: bool) -> None:
    async with served(per_client=1, connections=1) as world:
        for turn in range(3):
            stream = await world.connect()
            await stream.send_all(framed(b"later %d" % turn) * 3)
            await wait_until(lambda: world.service.forwarding == 3)
            if abrupt:
                reset(stream)
            else:
                stream.socket.shutdown(socket.SHUT_RDWR)
                await stream.aclose()
            world.service.gates[b"later %d" % turn].set()
            await wait_until(lambda: world.connections == 0)
        await world.assert_serves()
        assert world.counters.failures == 0


async def test_messages_of_the_largest_size_pass_whole_to_a_slow_reader() -> None:
    async with served() as world, await world.connect() as stream:
        message = b"now".ljust(65_532, b".")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, framed(message) * 3 + framed(b"huge"))
            for _ in range(3):
                assert await read(stream) == b"re:" + message
            assert await read(stream) == bytes(65_535)


async def test_a_client_that_does_not_read_is_cut_off_and_others_are_served() -> None:
    async with served(send=SHORT) as world:
        stream = await world.connect()
        async with stream, trio.open_nursery() as nursery:

            async def flood() -> None:
                with contextlib.suppress(trio.BrokenResourceError):
                    await stream.send_all(framed(b"huge") * 10_000)

            nursery.start_soon(flood)
            await wait_until(lambda: world.connections == 1)
            await world.assert_serves()
            await wait_until(lambda: world.connections == 0)
            nursery.cancel_scope.cancel()


async def test_urgent_data_does_no_harm() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.socket.send(b"!", socket.MSG_OOB)
        await stream.send_all(framed(b"now"))
        assert await read(stream) == b"re:now"


async def work(stream: trio.SocketStream, world: World, name: bytes) -> None:
    """Give a connection a query that waits."""
    before = world.service.forwarding
    await stream.send_all(framed(b"later" + name))
    await wait_until(lambda: world.service.forwarding == before + 1)


async def test_one_client_cannot_take_the_places_of_the_others() -> None:
    async with served(per_client=3, connections=5) as world:
        mine = [await world.connect("127.0.0.2") for _ in range(3)]
        for number, stream in enumerate(mine):
            await work(stream, world, b"mine%d" % number)
        async with await world.connect("127.0.0.2") as refused:
            await assert_ended(refused)
        theirs = [await world.connect(f"127.0.0.{number}") for number in (3, 4)]
        for number, stream in enumerate(theirs):
            await work(stream, world, b"theirs%d" % number)
        async with await world.connect("127.0.0.5") as refused:
            await assert_ended(refused)
        assert (world.counters.tcp_refused, world.counters.tcp_connections) == (2, 5)
        assert world.counters.tcp_evicted == 0
        for gate in world.service.gates.values():
            gate.set()
        for stream in mine + theirs:
            await stream.aclose()
        await wait_until(lambda: world.connections == 0)
        await world.assert_serves()


async def ask_now(stream: trio.SocketStream) -> None:
    await stream.send_all(framed(b"now"))
    assert await read(stream) == b"re:now"


@pytest.mark.parametrize(
    "limits", [pytest.param({"connections": 4}, id="in all"), pytest.param({"per_client": 4}, id="per client")]
)
async def test_at_a_limit_the_longest_idle_connection_makes_room(limits: dict[str, int]) -> None:
    async with served(**limits) as world:
        working, first, second, third = [await world.connect() for _ in range(4)]
        await wait_until(lambda: world.connections == 4)
        await work(working, world, b"1")
        for stream in (first, second, third):
            await ask_now(stream)
        # After this, the second is the longest idle one.
        await ask_now(first)
        async with await world.connect() as another:
            await ask_now(another)
            await assert_ended(second)
            for stream in (first, third):
                await ask_now(stream)
            world.service.gates[b"later1"].set()
            assert await read(working) == b"re:later1"
        assert (world.counters.tcp_evicted, world.counters.tcp_refused) == (1, 0)
        for stream in (working, first, second, third):
            await stream.aclose()


async def test_a_connection_whose_message_has_begun_is_not_idle() -> None:
    async with served(connections=1) as world, await world.connect() as stream:
        await stream.send_all(framed(b"now")[:3])
        await trio.testing.wait_all_tasks_blocked(0.01)
        async with await world.connect() as refused:
            await assert_ended(refused)
        await stream.send_all(framed(b"now")[3:])
        assert await read(stream) == b"re:now"


async def test_a_connection_that_was_answered_out_of_order_is_idle_since_its_last_reply() -> None:
    async with served(connections=2) as world:
        slow, other = [await world.connect() for _ in range(2)]
        await work(slow, world, b"1")
        await ask_now(other)
        world.service.gates[b"later1"].set()
        assert await read(slow) == b"re:later1"
        async with await world.connect() as another:
            await ask_now(another)
            await assert_ended(other)
        await ask_now(slow)
        for stream in (slow, other):
            await stream.aclose()


@pytest.mark.usefixtures("descriptors")
async def test_idle_clients_that_never_close_hold_no_descriptor() -> None:
    async with served(connections=3, closing=60) as world:
        idle = [await world.connect() for _ in range(12)]
        await ask_now(idle[-1])
        await wait_until(lambda: world.connections == 3)
        assert world.counters.tcp_evicted == 9
        for stream in idle:
            await stream.aclose()


async def test_a_listener_that_is_broken_is_not_served_on() -> None:
    class Broken:
        async def accept(self) -> trio.SocketStream:
            raise OSError(errno.EBADF, "a reason")

    server = StreamServer(Service(), counters=Counters(), limits=StreamLimits())
    with pytest.raises(ExceptionGroup) as caught:
        await server.run(Broken())  # type: ignore[arg-type]  # it has all used members
    assert caught.group_contains(OSError, match="a reason")


async def test_many_queries_on_one_connection_leave_nothing_behind() -> None:
    async with served() as world, await world.connect() as stream:

        async def ask(count: int) -> int:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream.send_all, framed(b"now") * count)
                for _ in range(count):
                    assert await read_message(stream) == b"re:now"
            gc.collect()
            return len(gc.get_objects())

        after_few = await ask(200)
        # trio removes expired deadlines by the thousand; two objects each.
        assert await ask(20_000) < after_few + 2500


async def test_a_bug_met_by_one_connection_ends_that_one_alone() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"bug"))
        await assert_ended(stream)
        await wait_until(lambda: world.counters.failures == 1)
        await world.assert_serves()


async def test_a_connection_that_was_reset_before_it_is_served_does_no_harm() -> None:
    async with served() as world:
        for _ in range(50):
            reset(await world.connect())
        await world.assert_serves()
        await wait_until(lambda: world.connections == 0)


@pytest.mark.usefixtures("descriptors")
async def test_draining_answers_what_is_under_way_and_ends_every_connection_with_fin() -> None:
    async with served() as world, trio.open_nursery() as nursery:
        fresh = await world.connect()
        idle, busy, sending = [await world.connect() for _ in range(3)]
        await idle.send_all(framed(b"now"))
        assert await read(idle) == b"re:now"
        await busy.send_all(framed(b"later") * 2)
        await sending.send_all(framed(b"now, in two parts")[:9])
        await wait_until(lambda: world.service.forwarding == 2 and world.connections == 4)
        await trio.testing.wait_all_tasks_blocked()
        drained: list[bool] = []

        async def drain() -> None:
            await world.server.drain()
            drained.append(True)

        nursery.start_soon(drain)
        nursery.start_soon(drain)
        await assert_ended_with_fin(fresh)
        await assert_ended_with_fin(idle)
        await sending.send_all(framed(b"now, in two parts")[9:])
        assert await read(sending) == b"re:now, in two parts"
        await assert_ended_with_fin(sending)
        assert not drained
        world.service.gates[b"later"].set()
        assert [await read(busy), await read(busy)] == [b"re:later"] * 2
        await assert_ended_with_fin(busy)
        for stream in (fresh, idle, busy, sending):
            await stream.aclose()
        await wait_until(lambda: drained == [True, True])


async def test_draining_does_not_wait_on_a_connection_whose_reply_was_being_sent() -> None:
    async with served() as world, await world.connect() as stream:
        # Too much for the buffers of the kernel, so the server is stopped in the middle of a send.
        await stream.send_all(framed(b"huge") * 200)
        await trio.testing.wait_all_tasks_blocked(0.01)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.server.drain)
            for _ in range(200):
                assert await read(stream) == bytes(65_535)
            await assert_ended_with_fin(stream)
            await stream.aclose()


async def test_after_draining_new_connections_are_refused() -> None:
    async with served() as world:
        await world.assert_serves()
        await world.server.drain()
        with pytest.raises(ConnectionRefusedError), socket.socket() as late:
            late.connect(world.address)


async def test_a_drain_that_goes_on_does_not_look_at_its_listeners_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are readable for ever once they are shut down."""
    monkeypatch.setattr("dnsproxy.server.stream_server._ACCEPTING", 1000)
    async with served() as world, await world.connect() as busy, trio.open_nursery() as nursery:
        await busy.send_all(framed(b"later"))
        await wait_until(lambda: world.service.forwarding == 1)
        with trio.move_on_after(0.05):
            await world.server.drain()
        nursery.start_soon(world.server.drain)
        await trio.testing.wait_all_tasks_blocked()
        world.service.gates[b"later"].set()
        assert await read(busy) == b"re:later"
        await assert_ended_with_fin(busy)
        await busy.aclose()


async def test_draining_answers_the_connections_and_queries_that_only_the_kernel_has_accepted() -> None:
    async with served() as world, await world.connect() as idle:
        await idle.send_all(framed(b"now"))
        assert await read(idle) == b"re:now"
        await trio.testing.wait_all_tasks_blocked()
        with contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(socket.create_connection(world.address)) for _ in range(50)]
            # No task of the server runs between these and the drain.
            for descriptor in (idle.socket.fileno(), *(one.fileno() for one in waiting)):
                os.write(descriptor, framed(b"now") * 2)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(world.server.drain)
                for one in (idle, *(trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in waiting)):
                    assert [await read(one), await read(one)] == [b"re:now"] * 2
                    await assert_ended_with_fin(one)
                    await one.aclose()


async def test_a_listener_that_another_process_goes_on_with_keeps_what_comes_after_the_drain() -> None:
    async with served("systemd's") as world:
        await world.assert_serves()
        await world.server.drain()
        async with await world.connect() as late:
            await late.send_all(framed(b"now"))
            world.nursery.start_soon(
                StreamServer(world.service, counters=Counters(), limits=StreamLimits()).run, world.listener
            )
            assert await read(late) == b"re:now"


async def test_a_client_that_never_closes_does_not_hold_up_the_end() -> None:
    async with served(closing=SHORT) as world, await world.connect() as stream:
        await stream.send_all(framed(b"now"))
        assert await read(stream) == b"re:now"
        await world.server.drain()
        assert world.connections == 0


async def test_table_and_upstream_answers_of_the_largest_size_pass_over_tcp() -> None:
    async with (
        faulty_upstream(streams=lambda asked: [upstream.sized(asked, 65_535)]) as server,
        running(server.endpoint) as world,
    ):
        asked = upstream.padded_query("www.example.net", 65_535)
        assert await world.ask_stream(asked) == upstream.sized(asked, 65_535)
        assert server.asked_streams[0].message[2:] == asked[2:]
        ours = read_dnspython(await world.ask_stream(upstream.padded_query(OURS, 65_535)))
        assert (ours.rcode, len(ours.answers)) == (upstream.NOERROR, 1)


async def test_only_over_tcp_a_client_gets_the_idle_time_of_its_connection() -> None:
    asked = query(OURS, additional=(opt_record(options=option(11)),))
    async with running(limits=StreamLimits(idle=12.5)) as world:
        assert (await world.ask_stream(asked)).endswith(b"\0\x0b\0\2" + (125).to_bytes(2, "big"))
        assert (await world.ask(asked)).endswith(b"\0\0")


async def test_a_query_over_tcp_is_asked_over_tcp_so_that_nothing_is_truncated() -> None:
    async with (
        faulty_upstream(
            lambda asked: [upstream.truncated(asked)], lambda asked: [upstream.sized(asked, 5000)]
        ) as server,
        running(server.endpoint) as world,
    ):
        asked = query("www.example.net")
        assert upstream.is_truncated(await world.ask(asked))
        assert await world.ask_stream(asked) == upstream.sized(asked, 5000)


async def test_another_process_gets_a_connection_when_nothing_of_it_is_open() -> None:
    """Two processes that write to one connection would break its frames."""
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"later1") + framed(b"later2") + framed(b"otherwise") + framed(b"now"))
        await wait_until(lambda: world.service.forwarding == 2)
        world.service.gates[b"later2"].set()
        assert await read(stream) == b"re:later2"
        assert not world.service.handed
        world.service.gates[b"later1"].set()
        assert await read(stream) == b"re:later1"
        assert await read(stream) == b"from the other process"
        ((_, received),) = world.service.handed
        assert received == framed(b"otherwise") + framed(b"now")


async def test_what_another_process_answers_stays_on_its_connection() -> None:
    async with served() as world, await world.connect() as stream:
        await stream.send_all(framed(b"now1") + framed(b"other") + framed(b"now2"))
        assert [await read(stream) for _ in range(3)] == [b"re:now1", b"re:other", b"re:now2"]
        assert not world.service.handed
        await world.assert_serves()
