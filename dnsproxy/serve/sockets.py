"""The sockets of a server: those of --listen, and those that systemd opened.

The law: every socket is closed with the caller's stack, also if a later one cannot be opened.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from dnsproxy.serve.settings import ServeSettings
from dnsproxy.workers.numbers import SocketSet
from dnsproxy.workers.spawner import MOST_DESCRIPTORS
from sidecar.sockets.inherited import Inherited, take_inherited
from sidecar.sockets.listeners import bound_endpoint, listen_both
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError


def open_sockets(settings: ServeSettings, sockets: ExitStack) -> tuple[list[socket.socket], list[socket.socket]]:
    """TCP and UDP sockets of each endpoint, with port 0 UDP on the port of TCP; and all inherited sockets."""
    inherited = take_inherited(flag="--listen") if settings.inherit else Inherited([], [])
    for one in (*inherited.streams, *inherited.datagrams):
        sockets.enter_context(one)
    streams, datagrams = _listen(settings.listen, sockets, shared=settings.shared)
    return streams + inherited.streams, datagrams + inherited.datagrams


def share_sockets(
    settings: ServeSettings,
    streams: Sequence[socket.socket],
    datagrams: Sequence[socket.socket],
    sockets: ExitStack,
) -> list[SocketSet]:
    """A set of sockets for each worker, from the result of open_sockets(), which is the first one.

    Only now are the ports shared: with SO_REUSEPORT from the start, a server that is there already would go unnoticed.
    Inherited sockets are in each set, because only systemd could open more of them. Raises StartError.
    """
    if len(streams) + len(datagrams) >= MOST_DESCRIPTORS:
        raise StartError(f"--workers {settings.workers}: at most {MOST_DESCRIPTORS // 2} endpoints of --listen")
    own = len(settings.listen)
    for one in (*streams[:own], *datagrams[:own]):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sets: list[SocketSet] = [(streams, datagrams)]
    for _ in range(settings.workers - 1):
        more_streams, more_datagrams = _listen(map(bound_endpoint, streams[:own]), sockets, shared=True)
        sets.append(([*more_streams, *streams[own:]], [*more_datagrams, *datagrams[own:]]))
    return sets


def _listen(
    endpoints: Iterable[Endpoint], sockets: ExitStack, *, shared: bool
) -> tuple[list[socket.socket], list[socket.socket]]:
    streams, datagrams = [], []
    for endpoint in endpoints:
        stream, datagram = listen_both(endpoint, flag="--listen", shared=shared)
        streams.append(sockets.enter_context(stream))
        datagrams.append(sockets.enter_context(datagram))
    return streams, datagrams
