"""Opening a UDP port: room for bursts, arrival times, and no trust in ICMP messages about packet sizes.

The law: the socket is bound and non-blocking already; it stays the caller's to close.
"""

from __future__ import annotations

import contextlib
import socket

from dnsproxy.datagrams.batch import BatchPort
from dnsproxy.datagrams.port import DatagramPort, ignore_path_mtu, keep_arrival_times

_RECEIVE_BUFFER = 4 << 20
# Of linux/socket.h; the socket module lacks it. It lifts the limit of net.core.rmem_max for root.
_SO_RCVBUFFORCE = 33


def open_port(sock: socket.socket) -> DatagramPort:
    """The port for a bound, non-blocking UDP socket."""
    _ask_for_room(sock)
    ignore_path_mtu(sock)
    keep_arrival_times(sock)
    return BatchPort(sock)


def _ask_for_room(sock: socket.socket) -> None:
    """Ask for a large receive buffer: a burst must fit while a table is swapped. A smaller one drops more."""
    for option in (socket.SO_RCVBUF, _SO_RCVBUFFORCE):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, _RECEIVE_BUFFER)
