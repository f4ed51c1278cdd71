"""A datagram port with only the socket module, one system call per datagram: what the batch port must equal."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence

from dnsproxy.datagrams.port import BATCH, CONTROL, ID, IP_PKTINFO, MESSAGE, Sender, age_of_last, ask_for_destination


class SinglePort:
    """Plain calls, in the order of the contract."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.send_errors = 0
        self._local = ask_for_destination(sock)
        self._messages: list[bytes] = []
        self._senders: list[Sender] = []

    def receive(self, limit: int = BATCH) -> list[bytes]:
        """See DatagramPort."""
        messages: list[bytes] = []
        self._messages, self._senders = messages, []
        # The queue is empty, or it is an ICMP error for an earlier reply, which the kernel reports only once.
        with contextlib.suppress(OSError):
            while len(messages) < limit:
                message, ancillary, _, address = self.socket.recvmsg(MESSAGE, CONTROL if self._local else 0)
                messages.append(message)
                self._senders.append((address, _source_only(ancillary), address[0]))
        return [message[ID:] for message in messages]

    def age(self) -> float:
        """See DatagramPort."""
        return age_of_last(self.socket)

    def message(self, position: int) -> bytes:
        """See DatagramPort."""
        return self._messages[position]

    def send(self, bodies: Sequence[bytes | None]) -> None:
        """See DatagramPort."""
        for body, message, sender in zip(bodies, self._messages, self._senders, strict=True):
            if body is not None:
                self._reply(message[:ID] + body, sender)

    def sender(self, position: int) -> Sender:
        """See DatagramPort."""
        return self._senders[position]

    def post(self, message: bytes, sender: Sender) -> None:
        """See DatagramPort."""
        self._reply(message, sender)

    def flush(self) -> None:
        """See DatagramPort; posted replies have left already."""

    def host(self, sender: Sender) -> str:
        """See DatagramPort."""
        return str(sender[0][0])

    def source_port(self, sender: Sender) -> int:
        """See DatagramPort."""
        return int(sender[0][1])

    def _reply(self, message: bytes, sender: Sender) -> None:
        try:
            self.socket.sendmsg([message], sender[1], 0, sender[0])
        except OSError:
            self.send_errors += 1


def _source_only(ancillary: list[tuple[int, int, bytes]]) -> tuple[tuple[int, int, bytes], ...]:
    """Packet information for a reply: the address asked, but no interface, so that the kernel routes the reply."""
    kept = []
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, IP_PKTINFO):
            kept.append((level, kind, bytes(4) + data[4:]))
        elif (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
            kept.append((level, kind, data[:16] + bytes(4)))
    return tuple(kept)
