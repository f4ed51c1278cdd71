"""The contract of a UDP port, and the socket options of all ports.

The law: a port moves octets. It does not interpret messages and does not wait: `receive` takes the queued datagrams,
`send` answers the senders of that batch by position. The first two octets of a message, its ID, stay with the port; the
rest is the body. Tested in tests/dnsproxy/datagrams/test_open.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import sys
import time
from collections.abc import Hashable, Sequence
from typing import Any, Final, Protocol

BATCH: Final = 64
"""The most datagrams in a batch: more gains nothing and delays the other tasks."""
ID: Final = 2
"""Octets of a message that stay with the port."""
MESSAGE: Final = 4096
"""Octets received of a datagram; a longer one is cut, and a cut query is malformed."""
CONTROL: Final = 64
"""Room for one IP_PKTINFO or IPV6_PKTINFO message."""

IP_PKTINFO: Final = 8
"""Of linux/in.h; the socket module lacks it."""

# IP_MTU_DISCOVER, IPV6_MTU_DISCOVER and IP_PMTUDISC_OMIT of linux/in.h and in6.h.
_MTU_DISCOVER = {socket.IPPROTO_IP: 10, socket.IPPROTO_IPV6: 23}
_PMTUDISC_OMIT = 5
# Of asm/socket.h; its first use makes the kernel keep the times. The answer is a struct timespec.
_SIOCGSTAMPNS = 0x8907
_TIMESPEC = struct.Struct("@ll")

Sender = tuple[Any, Any, Hashable]
"""Where a later reply goes: (address, packet info, client key). Only the port may read the first two; the key is equal
for all senders at one address. A hashable plain tuple, because each forwarded query makes one."""


class DatagramPort(Protocol):
    """A non-blocking UDP socket that receives and sends in batches."""

    socket: socket.socket
    send_errors: int
    """Datagrams that the kernel refused to send."""

    def receive(self, limit: int = BATCH) -> list[bytes]:
        """The bodies of the queued datagrams, `limit` at most (BATCH or less); an empty list if there is none."""

    def age(self) -> float:
        """Seconds since the kernel got the last datagram of the last batch; 0.0 if that is not known.

        The kernel's time of day is compared with ours, so a step of the clock between them counts: also below zero.
        """

    def message(self, position: int) -> bytes:
        """A whole datagram of the last batch."""

    def send(self, bodies: Sequence[bytes | None]) -> None:
        """Answer the senders of the last batch, by position, each with its ID; None sends no answer.

        A datagram without a whole ID must not be answered.
        """

    def sender(self, position: int) -> Sender:
        """The sender of a datagram of the last batch, for an answer after this batch."""

    def post(self, message: bytes, sender: Sender) -> None:
        """Answer one datagram after its batch; the answer leaves with the next flush()."""

    def flush(self) -> None:
        """Send the posted answers."""

    def source_port(self, sender: Sender) -> int:
        """The UDP source port of a datagram."""

    def host(self, sender: Sender) -> str:
        """The address of a datagram's sender, without its scope."""


def ignore_path_mtu(sock: socket.socket) -> None:
    """Ignore ICMP messages about packet sizes: attackers forge them, because fragments can be poisoned (RFC 9715)."""
    if sys.platform == "linux":
        level = socket.IPPROTO_IPV6 if sock.family == socket.AF_INET6 else socket.IPPROTO_IP
        with contextlib.suppress(OSError):
            sock.setsockopt(level, _MTU_DISCOVER[level], _PMTUDISC_OMIT)


def keep_arrival_times(sock: socket.socket) -> None:
    """Make the kernel keep the arrival time of each datagram that comes from now on: see age_of_last."""
    with contextlib.suppress(OSError):
        _arrival_time(sock)


def refuse_more(sock: socket.socket) -> None:
    """Refuse what comes from now on, as a closed port does; what is queued can still be read, and answered.

    The kernel gives a connected socket what its peer sends and nothing else (udp(7)), and the peer is the socket
    itself. Sockets that share the port get the rest. Not for a socket that another process goes on with.
    """
    with contextlib.suppress(OSError):
        sock.connect(sock.getsockname())


def age_of_last(sock: socket.socket) -> float:
    """See DatagramPort.age."""
    try:
        return time.time() - _arrival_time(sock)
    except OSError:
        return 0.0


def _arrival_time(sock: socket.socket) -> float:
    """When the kernel got the datagram that was received last, in seconds since the epoch (time(7), SIOCGSTAMPNS).

    SO_TIMESTAMPNS would add a control message to each datagram, which costs more and must not be sent back. Raises
    OSError if nothing was received yet, or if the kernel keeps no times.
    """
    seconds, nanoseconds = _TIMESPEC.unpack(fcntl.ioctl(sock, _SIOCGSTAMPNS, bytes(_TIMESPEC.size)))
    return float(seconds + nanoseconds / 1e9)


def ask_for_destination(sock: socket.socket) -> bool:
    """Make the kernel report the address that was asked, if the socket is bound to all addresses; False otherwise.

    A reply must leave from that address: every resolver checks it and drops other replies.
    """
    host = sock.getsockname()[0]
    if host not in ("0.0.0.0", "::"):
        return False
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    elif sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    else:
        return False
    return True
