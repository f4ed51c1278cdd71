"""A UDP port: the contract of every port, and the socket options that all of them set.

The law: a port moves octets. It neither looks into a message nor waits; `open.py` chooses the implementation.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Hashable, Sequence
from typing import Any, Final, Protocol

BATCH: Final = 64
"""Datagrams a batch at most: more gains nothing and holds up the other tasks."""
ID: Final = 2
"""Octets of a message that the port keeps to itself."""
MESSAGE: Final = 4096
"""Octets taken of a datagram; a longer one arrives cut, and a cut query is malformed."""
CONTROL: Final = 64
"""Room for one IP_PKTINFO or IPV6_PKTINFO message."""

IP_PKTINFO: Final = 8
"""Of linux/in.h; the socket module lacks it."""

# IP_MTU_DISCOVER, IPV6_MTU_DISCOVER and IP_PMTUDISC_OMIT of linux/in.h and in6.h.
_MTU_DISCOVER = {socket.IPPROTO_IP: 10, socket.IPPROTO_IPV6: 23}
_PMTUDISC_OMIT = 5

Sender = tuple[Any, Any, Hashable]
"""Where a later reply goes: the address, the local address that was asked (where the socket is bound to all), and what
all senders at that address have in common. Opaque to all but the port that made it, the last item aside; hashable, and
plain, as each forwarded query makes one."""


class DatagramPort(Protocol):
    """A non-blocking UDP socket whose datagrams come and go in batches."""

    socket: socket.socket
    send_errors: int
    """Datagrams that the kernel refused to send."""

    def receive(self) -> list[bytes]:
        """The bodies of the datagrams that wait, BATCH at most; empty where none does."""

    def message(self, position: int) -> bytes:
        """A datagram of the last batch, whole."""

    def send(self, bodies: Sequence[bytes | None]) -> None:
        """Answer the senders of the last batch, by position, each under its ID; None answers nothing.

        A datagram without a whole ID must not be answered.
        """

    def sender(self, position: int) -> Sender:
        """The sender of a datagram of the last batch, for answering after the next."""

    def post(self, message: bytes, sender: Sender) -> None:
        """Answer one datagram after its batch, with the next flush()."""

    def flush(self) -> None:
        """Send what was posted."""

    def source_port(self, sender: Sender) -> int:
        """The UDP port that a datagram came from."""


def ignore_path_mtu(sock: socket.socket) -> None:
    """Take no forged ICMP's word for how small a packet must be: fragments are what poisoners work on (RFC 9715)."""
    if sys.platform == "linux":
        level = socket.IPPROTO_IPV6 if sock.family == socket.AF_INET6 else socket.IPPROTO_IP
        with contextlib.suppress(OSError):
            sock.setsockopt(level, _MTU_DISCOVER[level], _PMTUDISC_OMIT)


def ask_for_destination(sock: socket.socket) -> bool:
    """Have the kernel tell which address was asked, where the socket is bound to all of them.

    A reply must leave from that address, or a resolver that checks it (all of them) throws it away.
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
