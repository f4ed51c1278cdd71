"""The sockets of a server: those of --listen, and those that systemd opened.

The law: every socket is closed with the caller's stack, also if a later one cannot be opened.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack

from dnsproxy.serve.settings import ServeSettings
from sidecar.sockets.inherited import Inherited, take_inherited
from sidecar.sockets.listeners import listen_both


def open_sockets(settings: ServeSettings, sockets: ExitStack) -> tuple[list[socket.socket], list[socket.socket]]:
    """TCP and UDP sockets of each endpoint, with port 0 UDP on the port of TCP; and all inherited sockets."""
    inherited = take_inherited(flag="--listen") if settings.inherit else Inherited([], [])
    for one in (*inherited.streams, *inherited.datagrams):
        sockets.enter_context(one)
    streams, datagrams = [], []
    for endpoint in settings.listen:
        stream, datagram = listen_both(endpoint, flag="--listen", shared=settings.shared)
        streams.append(sockets.enter_context(stream))
        datagrams.append(sockets.enter_context(datagram))
    return streams + inherited.streams, datagrams + inherited.datagrams
