"""One socket of a relayed connection, with what is known of its state.

The law: a side holds state and hands events to whoever owns it at the moment, first the dialling, then the connection.
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
    from sidecar.poller import Poller

Arguments = TypeVarTuple("Arguments")

log: structlog.stdlib.BoundLogger = structlog.get_logger()

FAULT: Final = "connection failed"
BULK: Final = 2
"""The last read of a stream's every burst finds little, and the first of the next one much."""

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
"""How long a peer that acknowledges nothing is borne with. One that is there and reads nothing answers the probes of
its window, which are never further apart than 120 s (TCP_RTO_MAX); without this, the kernel tries for 15 minutes.

TCP_USER_TIMEOUT (tcp(7)) is no help: it ends such a reader, too.
"""


class End(Enum):
    """How a side stopped sending."""

    FIN = "fin"
    RESET = "reset"


class Owner(Protocol):
    """Who moves a side on: what is being dialled, then the connection."""

    def handle(self, side: Side, events: int) -> None:
        """Take in an event mask of epoll."""

    def close(self, *, reset: bool) -> None:
        """End it all."""


class Nobody:
    """The owner of a side that is closed."""

    def handle(self, side: Side, events: int) -> None:
        """Nothing is done about it any more."""

    def close(self, *, reset: bool) -> None:
        """It is closed."""


NOBODY: Final = Nobody()


def contain(owner: Owner, step: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
    """Do one step of a connection so that a fault in it ends this connection and no other."""
    try:
        step(*arguments)
    except Exception:
        # What peers can cause is handled where it happens, so this is a fault of ours: say it, and go on without it.
        log.exception(FAULT)
        owner.close(reset=True)


class Side:
    """One socket."""

    __slots__ = (
        "broken",
        "bulk",
        "end",
        "ending",
        "fd",
        "finished",
        "owner",
        "peer",
        "pending",
        "readable",
        "room_watched",
        "sock",
        "thorough",
        "urgent",
    )

    peer: Side

    def __init__(self, owner: Owner, sock: socket.SocketType) -> None:
        self.owner = owner
        self.sock = sock
        self.fd = sock.fileno()
        """-1 once released: its number may belong to another connection by then."""
        self.pending: bytes | Pipe = b""
        """What is still to be sent to it: octets, or a pipe that holds them."""
        self.bulk = 0
        """How many more reads go through a pipe; each that finds more than a buffer sets it to BULK again."""
        self.room_watched = False
        """An event will say when it has room again."""
        self.readable = False
        """A read may find something: an event said so, and no read since has found the socket empty."""
        self.thorough = False
        """It is read until it is found empty, also where a read was short."""
        self.urgent = False
        """It has sent urgent data, where a read stops short and splice sees no more (tcp(7))."""
        self.end: End | None = None
        """How it stopped sending; None while it may send more."""
        self.ending = False
        """Its FIN is known to be behind what the next short read finds: no read has to look for it."""
        self.finished = False
        """It was sent FIN."""
        self.broken = False
        """It was reset, and takes nothing any more."""

    def handle(self, events: int) -> None:
        """Take in an event mask of epoll."""
        owner = self.owner
        # As contain, without the call.
        try:
            owner.handle(self, events)
        except Exception:
            log.exception(FAULT)
            owner.close(reset=True)

    def unsent(self) -> int:
        """Octets that the other end has not acknowledged yet (SIOCOUTQ, tcp(7))."""
        count: int = _COUNT.unpack(fcntl.ioctl(self.fd, termios.TIOCOUTQ, bytes(_COUNT.size)))[0]
        return count

    def keep_alive(self) -> None:
        """Have the kernel ask, while nothing moves, whether the other end still exists."""
        for level, option, value in _KEEPALIVE:
            self.sock.setsockopt(level, option, value)

    def is_gone(self) -> bool:
        """Whether the other end leaves octets and what is asked again unanswered, and has done so for long."""
        if self.fd < 0 or not self.unsent():
            return False
        retransmits, probes, answered = _TCP_INFO.unpack(
            self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        )
        return bool(retransmits or probes) and answered >= UNACKNOWLEDGED_SECONDS * 1000

    def release(self, poller: Poller, *, reset: bool) -> None:
        """Close the socket, with a reset in place of FIN if asked so; what was not sent yet is lost then."""
        if self.fd < 0:
            return
        poller.forget(self.fd)
        self.fd = -1
        if reset:
            reset_on_close(self.sock)
        self.sock.close()


def reset_on_close(sock: socket.SocketType) -> None:
    """Have the next close of a socket send RST (SO_LINGER with no time, socket(7))."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
