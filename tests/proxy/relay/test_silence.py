"""Peers that vanish without FIN or RST: keepalive, retransmissions and window probes find them."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct

import pytest
import trio

from proxy.relay import ends, side
from tests.conftest import refuse
from tests.kit.relaying import World, read_to_end, received_in, relaying, send_all, sides_of, until

_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""One instruction of the classic packet filter (linux/filter.h): drop every packet."""

HASTY = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2),
)


def fall_silent(stream: trio.socket.SocketType) -> None:
    """From now on a socket receives and acknowledges nothing, as if its computer had lost power."""
    code = ctypes.create_string_buffer(_RETURN_NOTHING, len(_RETURN_NOTHING))
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(code))
    try:
        stream.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    except PermissionError as error:
        # The kernel limits the memory for compiled filters (net.core.bpf_jit_limit).
        refuse(f"this takes a packet filter: {error}")


def arm(world: World) -> None:
    """Have the connection do what it does after its first deadline."""
    sides_of(world).on_due(0.0)


@pytest.mark.parametrize("gone", ["client", "backend"])
async def test_an_idle_peer_that_is_gone_is_found_by_keepalive(monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    monkeypatch.setattr(side, "_KEEPALIVE", HASTY)
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            arm(world)
            silent, other = (client, backend) if gone == "client" else (backend, client)
            fall_silent(silent)
            assert await read_to_end(other) == (b"", "reset")


@pytest.mark.parametrize("gone", ["client", "backend"])
async def test_a_peer_that_acknowledges_nothing_is_given_up_though_there_is_always_more_for_it(
    monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    monkeypatch.setattr(side, "UNACKNOWLEDGED_SECONDS", 1.0)
    monkeypatch.setattr(ends, "LOOK_SECONDS", 0.25)
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            arm(world)
            silent, other = (client, backend) if gone == "client" else (backend, client)
            fall_silent(silent)
            # Each send moves data, so that the connection is not idle.
            counters, sent = world.relay.core.counters, 0
            while counters.active:
                with contextlib.suppress(ConnectionResetError):
                    sent += await other.send(b"nobody hears this")
                await until(
                    lambda sent=sent: (
                        counters.octets_to_client + counters.octets_to_backend >= sent or not counters.active
                    )
                )


async def test_a_reader_that_pauses_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "LOOK_SECONDS", 0.25)
    async with relaying() as world:
        client, backend = await world.pair(receive_buffer=4096)
        with client, backend:
            arm(world)
            looks = count_looks(monkeypatch)
            sent = bytes(300_000)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all, backend, sent)
                # Its window is closed, and the kernel probes it.
                await until(lambda: probes_of(sides_of(world).client) > 0)
                before = len(looks)
                await until(lambda: len(looks) > before + 2)
                assert await received_in(client, len(sent)) == sent
            assert set(looks) == {False}


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The results of all checks of sides from now on."""
    looks: list[bool] = []
    look = side.Side.is_gone

    def is_gone(one: side.Side) -> bool:
        looks.append(look(one))
        return looks[-1]

    monkeypatch.setattr(side.Side, "is_gone", is_gone)
    return looks


def probes_of(one: side.Side) -> int:
    """tcpi_probes of struct tcp_info (linux/tcp.h)."""
    return one.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 4)[3]


@pytest.mark.parametrize(
    ("retransmits", "probes", "answered", "unsent", "gone"),
    [
        pytest.param(9, 0, 150_000, 1, True, id="asked again and not answered"),
        pytest.param(0, 6, 150_000, 1, True, id="a window that nobody opens"),
        pytest.param(9, 0, 149_999, 1, False, id="not for long enough"),
        pytest.param(0, 7, 120_000, 1, False, id="between two probes of a reader that pauses"),
        pytest.param(0, 0, 500_000, 1, False, id="only just sent after a long silence"),
        pytest.param(9, 9, 500_000, 0, False, id="nothing left to acknowledge"),
    ],
)
def test_a_peer_is_gone(
    monkeypatch: pytest.MonkeyPatch, retransmits: int, probes: int, answered: int, unsent: int, gone: bool
) -> None:
    monkeypatch.setattr(side.Side, "unsent", lambda _: unsent)
    with socket.socket() as real:
        one = side.Side(side.NO_OWNER, Played(real.fileno(), retransmits, probes, answered))  # type: ignore[arg-type]
        assert one.is_gone() is gone


class Played:
    """A socket with a fixed tcp_info."""

    def __init__(self, number: int, retransmits: int, probes: int, answered: int) -> None:
        self._number = number
        self._info = struct.pack("=8B13I", 1, 0, retransmits, probes, 0, 0, 0, 0, *(0,) * 12, answered)

    def fileno(self) -> int:
        return self._number

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option) == (socket.IPPROTO_TCP, socket.TCP_INFO)
        return self._info[:size]
