"""One socket of a relayed connection, and what is known of its state.

The law: a side holds state and passes events to its owner: first the dialling, then the loop check or the connection.
Tested in test_silence.py and, with its connection, in test_connection.py and test_ends.py.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeVarTuple

import structlog

if TYPE_CHECKING:
    from proxy.relay.splice import Pipe
    from sidecar.loop.poller import Poller

Arguments = TypeVarTuple("Arguments")

log: structlog.stdlib.BoundLogger = structlog.get_logger()

FAULT: Final = "connection failed"
BULK: Final = 2
"""Two reads, because the last read of a burst finds little, and the first read of the next burst much."""

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
_COUNT: Final = struct.Struct("i")
_TCP_INFO: Final = struct.Struct("=2xBB52xI")
"""Of struct tcp_info (linux/tcp.h): tcpi_retransmits, tcpi_probes, tcpi_last_ack_recv in milliseconds."""
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6),
)
UNACKNOWLEDGED_SECONDS: Final = 150.0
"""Seconds without an ACK before a peer counts as dead. A live peer that reads nothing answers window probes, which are
at most 120 s apart (TCP_RTO_MAX). Without this limit, the kernel retries for 15 minutes.

TCP_USER_TIMEOUT (tcp(7)) does not help: it also ends a live peer that reads nothing.
"""


class End(Enum):
    """How a side stopped sending."""

    FIN = "fin"
    RESET = "reset"


class Closable(Protocol):
    """Something with sockets."""

    def close(self, *, reset: bool) -> None:
        """Close all its sockets, with RST if `reset`."""


class Owner(Closable, Protocol):
    """What handles the events of a side: the dialling, then the loop check or the connection."""

    def handle(self, side: Side, events: int) -> None:
        """Handle an epoll event mask."""


class NoOwner:
    """The owner of a closed side."""

    def handle(self, side: Side, events: int) -> None:
        """Ignore the event."""

    def close(self, *, reset: bool) -> None:
        """Do nothing: the side is closed."""


NO_OWNER: Final = NoOwner()


def contain(owner: Closable, step: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
    """Run one step of a connection; an exception ends this connection and no other."""
    try:
        step(*arguments)
    except Exception:
        # Errors that peers can cause are handled where they occur; this is a bug of the relay.
        log.exception(FAULT)
        owner.close(reset=True)


class Side:
    """One socket."""

    __slots__ = (
        "address",
        "broken",
        "bulk",
        "end",
        "ending",
        "fd",
        "finished",
        "moved",
        "owner",
        "peer",
        "pending",
        "readable",
        "room_watched",
        "sock",
        "thorough",
        "urgent",
    )

    address: tuple[str, int]
    """Where a backend was dialled; a client has none."""
    peer: Side

    def __init__(self, owner: Owner, sock: socket.SocketType) -> None:
        self.owner = owner
        self.sock = sock
        self.fd = sock.fileno()
        """-1 after release: another connection may have this number by then."""
        self.pending: bytes | Pipe = b""
        """What is still to be sent to this side: bytes, or a pipe that holds them."""
        self.bulk = 0
        """How many more reads go through a pipe; a read that finds more than a buffer sets it to BULK again."""
        self.room_watched = False
        """The poller reports when the socket is writable again."""
        self.readable = False
        """An event has reported data, and no read has found the socket empty since."""
        self.thorough = False
        """Read until the socket is empty, even after a short read."""
        self.urgent = False
        """The side has sent urgent data: a read stops before it, and splice does not go past it (tcp(7))."""
        self.end: End | None = None
        """How the side stopped sending; None while it may send more."""
        self.ending = False
        """A FIN follows the data of the next short read: no further read is needed to find it."""
        self.finished = False
        """The relay has sent FIN to this side."""
        self.broken = False
        """This side has sent RST, and accepts no more data."""
        self.moved = 0
        """Bytes of payload that were read from this side."""

    def handle(self, events: int) -> None:
        """Handle an epoll event mask."""
        owner = self.owner
        # The same as contain(), without the cost of its call.
        try:
            owner.handle(self, events)
        except Exception:
            log.exception(FAULT)
            owner.close(reset=True)

    def note_urgent(self) -> None:
        """The side has sent urgent data, or may have: read it like other data. Only an end costs this call in vain."""
        if not self.urgent:
            self.urgent = True
            keep_urgent_data(self.sock)

    def unsent(self) -> int:
        """Bytes that the peer has not acknowledged (SIOCOUTQ, tcp(7)); none after release."""
        if self.fd < 0:
            return 0
        count: int = _COUNT.unpack(fcntl.ioctl(self.fd, termios.TIOCOUTQ, bytes(_COUNT.size)))[0]
        return count

    def keep_alive(self) -> None:
        """Have the kernel probe an idle peer."""
        for level, option, value in _KEEPALIVE:
            self.sock.setsockopt(level, option, value)

    def is_gone(self) -> bool:
        """Whether the peer has not acknowledged data or window probes for UNACKNOWLEDGED_SECONDS."""
        if not self.unsent():
            return False
        retransmits, probes, answered = _TCP_INFO.unpack(
            self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        )
        return bool(retransmits or probes) and answered >= UNACKNOWLEDGED_SECONDS * 1000

    def release(self, poller: Poller, *, reset: bool) -> None:
        """Close the socket; with `reset` it sends RST instead of FIN, and unsent data is lost."""
        if self.fd < 0:
            return
        poller.forget(self.fd)
        self.fd = -1
        if reset:
            reset_on_close(self.sock)
        self.sock.close()


def reset_on_close(sock: socket.SocketType) -> None:
    """Have the close of a socket send RST (SO_LINGER with a time of zero, socket(7))."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


def send_at_once(sock: socket.SocketType) -> None:
    """Send each segment without waiting for the ACK of the previous one (TCP_NODELAY, tcp(7))."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def acknowledge_with_data(sock: socket.SocketType) -> None:
    """Have the first data carry the last ACK of the handshake (TCP_QUICKACK, tcp(7)), which saves a segment.

    Only for a socket that is about to connect and has data then: without, its peer would wait 200 ms for the ACK.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)


def keep_urgent_data(sock: socket.SocketType) -> None:
    """Leave urgent data in its place among the other data (SO_OOBINLINE, socket(7)); otherwise reads skip an octet."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
