"""The law of the byte path for any order of events: data arrives complete and in order, and then the end of its sender.

What is on the way to a side that resets is lost with it; what it sent itself, and the relay had received, is not.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.relay.splice import Pipes
from tests.kit.relaying import acknowledged, pattern, read_to_end, relaying, reset, send_all, until

Socket = trio.socket.SocketType

each_way = pytest.mark.parametrize("most", [0, 1, 256], ids=["copied", "one pipe for all", "spliced"])
sends = st.one_of(st.integers(1, 20), st.sampled_from([65_535, 65_536, 65_537, 200_000, 400_000, 1_000_000]))
turns = st.integers(0, 5)


@dataclass(frozen=True)
class Script:
    """The actions of one side: sends, each after some turns of the other tasks, and an end."""

    sends: list[tuple[int, int]]
    end: str
    reads_after: int

    @property
    def sent(self) -> bytes:
        return b"".join(pattern(size) for _, size in self.sends)


def scripts(*ends: str) -> st.SearchStrategy[Script]:
    return st.builds(
        Script,
        st.lists(st.tuples(turns, sends), max_size=5),
        st.sampled_from(ends),
        st.sampled_from([0, 1, 10, 100]),
    )


async def play(script: Script, stream: Socket, failed: set[Socket]) -> None:
    try:
        for wait, size in script.sends:
            await wait_turns(wait)
            await send_all(stream, pattern(size))
        if script.end == "fin":
            stream.shutdown(socket.SHUT_WR)
            return
    except OSError:
        # The other side has sent RST, which ends both directions. The error is reported once, so no read gets it.
        failed.add(stream)
        return
    # RST discards what the relay has not received yet.
    await until(lambda: acknowledged(stream) or is_closed(stream))
    reset(stream)


def is_closed(stream: Socket) -> bool:
    """Whether the other side has sent RST (TCP_CLOSE, the first byte of tcp_info)."""
    return stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x07"


async def read(script: Script, stream: Socket, into: dict[str, tuple[bytes, str]], name: str) -> None:
    await wait_turns(script.reads_after)
    try:
        into[name] = await read_to_end(stream)
    except (OSError, trio.ClosedResourceError):
        into[name] = (b"", "closed by itself")


async def wait_turns(count: int) -> None:
    for _ in range(count):
        await trio.lowlevel.checkpoint()


async def relay(client_script: Script, backend_script: Script, *, most: int) -> dict[str, tuple[bytes, str]]:
    received: dict[str, tuple[bytes, str]] = {}
    failed: set[Socket] = set()
    with trio.fail_after(30):
        async with relaying(pipes=Pipes(most=most)) as world:
            client, backend = await world.pair()
            with client, backend:
                async with trio.open_nursery() as nursery:
                    for name, script, stream in (
                        ("client", client_script, client),
                        ("backend", backend_script, backend),
                    ):
                        nursery.start_soon(play, script, stream, failed)
                        nursery.start_soon(read, script, stream, received, name)
                for name, stream in (("client", client), ("backend", backend)):
                    if stream in failed:
                        received[name] = (received[name][0], "reset")
            await until(lambda: world.relay.core.counters.active == 0)
    return received


@each_way
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(client=scripts("fin"), backend=scripts("fin"))
async def test_whatever_the_order_both_sides_get_all_and_a_clean_end(
    most: int, client: Script, backend: Script
) -> None:
    received = await relay(client, backend, most=most)
    assert received == {"client": (backend.sent, "fin"), "backend": (client.sent, "fin")}


@each_way
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(client=scripts("fin", "reset"), backend=scripts("fin", "reset"))
async def test_after_a_reset_no_side_gets_fin_before_all_data(most: int, client: Script, backend: Script) -> None:
    received = await relay(client, backend, most=most)
    for name, other in (("client", backend), ("backend", client)):
        octets, end = received[name]
        assert other.sent.startswith(octets)
        assert end != "fin" or (octets, other.end) == (other.sent, "fin")


@each_way
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(size=sends, before=turns, late=st.sampled_from([0, 1, 10, 100]), who=st.sampled_from(["client", "backend"]))
async def test_a_reset_comes_after_all_that_was_sent(most: int, size: int, before: int, late: int, who: str) -> None:
    resetting = Script([(before, size)], "reset", 0)
    received: dict[str, tuple[bytes, str]] = {}
    failed: set[Socket] = set()
    with trio.fail_after(30):
        async with relaying(pipes=Pipes(most=most)) as world:
            client, backend = await world.pair()
            with client, backend:
                by, other = (client, backend) if who == "client" else (backend, client)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(play, resetting, by, failed)
                    nursery.start_soon(read, Script([], "fin", late), other, received, "other")
            await until(lambda: world.relay.core.counters.active == 0)
    assert received["other"] == (pattern(size), "reset")


@each_way
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bursts=st.lists(sends, min_size=1, max_size=4), who=st.sampled_from(["client", "backend"]))
async def test_all_that_was_sent_before_a_pause_arrives_with_nothing_behind_it(
    most: int, bursts: list[int], who: str
) -> None:
    with trio.fail_after(30):
        async with relaying(pipes=Pipes(most=most)) as world:
            client, backend = await world.pair()
            sender, receiver = (client, backend) if who == "client" else (backend, client)
            with client, backend:
                for size in bursts:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(send_all, sender, pattern(size))
                        received = bytearray()
                        while len(received) < size:
                            received += await receiver.recv(65_536)
                    assert received == pattern(size)
