"""Peers that are gone without a word, which the kernel has to find out for us."""

from __future__ import annotations

import ctypes
import socket
import struct

import pytest
import trio

from proxy import side
from tests.proxy.relaying import World, read_to_end, relaying
from tests.proxy.test_connection import sides_of

_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""One instruction of the classic packet filter (linux/filter.h): take no octet of any packet."""

HASTY = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2),
)


def fall_silent(stream: trio.socket.SocketType) -> None:
    """From now on a socket hears nothing, and so acknowledges nothing: as if its computer had lost its power."""
    code = ctypes.create_string_buffer(_RETURN_NOTHING, len(_RETURN_NOTHING))
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(code))
    stream.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def arm(world: World) -> None:
    """What a connection does when it has lived for a while."""
    sides_of(world).on_due(0.0)


def user_timeouts(world: World) -> list[int]:
    connected = sides_of(world)
    return [
        one.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        for one in (connected.client, connected.backend)
    ]


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


async def test_a_peer_that_acknowledges_nothing_is_given_up_long_before_a_long_idle_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side, "UNACKNOWLEDGED_SECONDS", 1.0)
    async with relaying(idle_timeout=3600) as world:
        client, backend = await world.pair()
        with client, backend:
            arm(world)
            assert user_timeouts(world) == [1000, 1000]
            fall_silent(client)
            await backend.send(b"nobody hears this")
            assert await read_to_end(backend) == (b"", "reset")


async def test_a_reader_that_pauses_has_as_long_as_the_idle_timeout() -> None:
    # Set, it would end a peer that is alive and has its window closed.
    async with relaying(idle_timeout=side.UNACKNOWLEDGED_SECONDS) as world:
        client, backend = await world.pair()
        with client, backend:
            arm(world)
            assert user_timeouts(world) == [0, 0]
