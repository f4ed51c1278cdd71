"""Paths that lose their state, through the whole server: no client notices more than a delay, and others nothing."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.forward import source_ports
from dnsproxy.forward.deadlines import RETRY, SILENT, STREAM_PROBE_EVERY, SUSPECT, TICK
from tests.kit import upstream_replies as upstream
from tests.kit.dns_server import TRUSTING, Running, running
from tests.kit.faulty_upstream import FaultyUpstream, Script, answer, faulty_upstream, silence
from tests.kit.messages import query

OVER_TCP = replace(TRUSTING, use_tcp=True)
CUT: Script = lambda asked: [upstream.truncated(asked)]  # noqa: E731
"""A large answer: over UDP only the wish for TCP."""


def lost(server: FaultyUpstream, reply: Callable[[bytes], bytes] = upstream.right) -> Script:
    """The connections that have asked so far lose their path; others are answered."""
    without_path = {asked.source for asked in server.asked_streams}
    return lambda asked: [] if server.asked_streams[-1].source in without_path else [reply(asked)]


async def seconds_of(ask: Callable[[bytes], Awaitable[bytes]], number: int) -> list[float]:
    """How long each of so many queries took, 20 a second; each is answered."""
    found: list[float] = []

    async def one(message: bytes) -> None:
        began = trio.current_time()
        assert upstream.rcode_of(await ask(message)) == upstream.NOERROR
        found.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        for place in range(number):
            nursery.start_soon(one, query(f"h{place}.example.net"))
            await trio.sleep(0.05)
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["UDP clients", "TCP clients"])
async def test_a_connection_that_lost_its_path_costs_no_client_its_reply(clock: MockClock, stream: bool) -> None:
    with capture_logs() as logs:
        async with faulty_upstream() as server, running(server.endpoint, forwarding=OVER_TCP) as world:
            ask = world.ask_stream if stream else world.ask
            await seconds_of(ask, 5)
            server.streams = lost(server)
            assert max(await seconds_of(ask, 60)) < SUSPECT + 0.3
            assert not world.forwarder.upstreams.used[0].health.failing
            assert server.connections == 2
            await trio.sleep(SILENT)
    assert [line["log_level"] for line in logs][:1] == ["warning"]


async def test_large_answers_arrive_after_their_connection_lost_its_path(clock: MockClock) -> None:
    async with faulty_upstream(CUT) as server, running(server.endpoint) as world:
        server.streams = lambda asked: [upstream.sized(asked, 5000)]
        await seconds_of(world.ask_stream, 5)
        server.streams = lost(server, lambda asked: upstream.sized(asked, 5000))
        assert max(await seconds_of(world.ask_stream, 60)) < SUSPECT + 0.3
        assert server.connections == 2


async def test_a_server_that_hangs_gives_way_to_the_next_within_the_deadline_and_then_at_once(
    clock: MockClock,
) -> None:
    """Its connections open and stay silent, as those through a balancer to a hung server do."""
    async with (
        faulty_upstream(silence, answer) as first,
        faulty_upstream() as second,
        running(first.endpoint, second.endpoint, forwarding=OVER_TCP) as world,
    ):
        await seconds_of(world.ask, 5)
        first.streams = silence
        seconds = await seconds_of(world.ask, 100)
        assert max(seconds) <= RETRY + 2 * TICK
        assert max(seconds[50:]) < 0.1
        assert first.connections <= 8


async def test_where_tcp_alone_is_silent_clients_over_tcp_avoid_it_and_those_over_udp_notice_nothing(
    clock: MockClock,
) -> None:
    async with (
        faulty_upstream(answer, silence) as first,
        faulty_upstream() as second,
        running(first.endpoint, second.endpoint) as world,
    ):
        await seconds_of(world.ask_stream, 150)
        assert max(await seconds_of(world.ask_stream, 10)) < 0.1
        asked = len(second.asked_datagrams)
        assert max(await seconds_of(world.ask, 10)) < 0.1
        assert len(second.asked_datagrams) == asked
        first.streams = answer
        await trio.sleep(2 * STREAM_PROBE_EVERY)
        before = len(first.asked_streams)
        await seconds_of(world.ask_stream, 3)
        assert len(first.asked_streams) == before + 3


# --- source ports over UDP -------------------------------------------------------------------------------------------


def lost_port(server: FaultyUpstream) -> Script:
    """The source port that asked first is cut off, as one is whose NAT entry leads to a server that is gone."""
    first = server.asked_datagrams[0].source
    return lambda asked: [] if server.asked_datagrams[-1].source == first else [upstream.right(asked)]


async def test_a_source_port_on_which_nothing_arrives_is_replaced(clock: MockClock) -> None:
    few_ports = replace(TRUSTING, source_ports=8)
    async with faulty_upstream() as server, running(server.endpoint, forwarding=few_ports) as world:
        await seconds_of(world.ask, 8)
        server.datagrams = lost_port(server)
        slow = [seconds for seconds in await seconds_of(world.ask, 100) if seconds > RETRY / 2]
        # Three are missed before it is replaced, and a few more leave meanwhile.
        assert 0 < len(slow) <= 10
        assert max(await seconds_of(world.ask, 20)) < RETRY / 2
        await no_socket_is_left_behind(world, 4)


async def no_socket_is_left_behind(world: Running, number: int) -> None:
    ports = world.forwarder.upstreams.used[0].ports
    with trio.fail_after(10):
        while len(ports._sockets) + len(ports._retired) > number:  # the clock jumps
            await trio.sleep(0.1)
            ports.close_retired()


async def test_the_ports_of_a_server_that_is_silent_for_a_while_stay_few(clock: MockClock) -> None:
    async with faulty_upstream(silence, silence) as server, running(server.endpoint) as world, world.client() as client:
        for wave in range(5):
            for place in range(100):
                await client.send(query(f"w{wave}h{place}.example.net", ident=place))
            for _ in range(100):
                await client.recv(512)
        ports = world.forwarder.upstreams.used[0].ports
        assert len(ports._sockets) + len(ports._retired) <= 2 * source_ports.SOCKETS
        server.datagrams = answer
        await trio.sleep(2.0)
        assert max(await seconds_of(world.ask, 10)) < 0.1
