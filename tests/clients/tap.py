"""The DNS messages on a pod's wire, as packets (packet(7)).

The law: a message is here before its receiver can read it, so that all of a lookup's messages are here when it ends.
Retransmissions are messages too. Linux and root only.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import dns.message
import dns.rdatatype

from tests.kit.networks import Network

_EVERY_PROTOCOL: Final = 0x0003  # ETH_P_ALL
_ETHERNET: Final = 14
_IPV4: Final = 0x0800
_IPV6: Final = 0x86DD
_IPV6_HEADER: Final = 40
_UDP_HEADER: Final = 8
_PORT: Final = 53
_BUFFER: Final = 4 << 20
_LENGTH: Final = 2
"""Octets before each message over TCP (RFC 1035 section 4.2.2)."""


@dataclass(frozen=True)
class Message:
    """A query of a client, or a reply to it."""

    name: str
    """With its last dot."""
    type: str
    transport: str
    """UDP or TCP."""
    is_reply: bool
    rcode: int
    answers: int
    """Sets of records in the answer section."""


@dataclass
class Tap:
    """A socket that gets a copy of every packet of an interface."""

    packets: socket.socket
    _streams: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """What is unread of each direction of a TCP connection, by source and destination port."""

    def read(self) -> list[Message]:
        """The messages since the last call."""
        return [message for frame in self._frames() for message in self._messages_in(frame)]

    def _frames(self) -> Iterator[bytes]:
        while True:
            try:
                yield self.packets.recv(0xFFFF)
            except BlockingIOError:
                return

    def _messages_in(self, frame: bytes) -> Iterator[Message]:
        protocol, segment = transport_of(frame)
        if protocol not in (socket.IPPROTO_UDP, socket.IPPROTO_TCP):
            return
        ports: tuple[int, int] = struct.unpack_from("!HH", segment)
        if _PORT not in ports:
            return
        if protocol == socket.IPPROTO_UDP:
            yield _parse(segment[_UDP_HEADER:], "UDP")
            return
        # The wire loses nothing and keeps the order, so that the segments are the stream.
        unread = self._streams.get(ports, b"") + segment[(segment[12] >> 4) * 4 :]
        while len(unread) >= _LENGTH and len(unread) >= (end := _LENGTH + int.from_bytes(unread[:_LENGTH], "big")):
            yield _parse(unread[_LENGTH:end], "TCP")
            unread = unread[end:]
        self._streams[ports] = unread


@contextmanager
def tapped(network: Network, interface: str = "wire") -> Iterator[Tap]:
    """A tap on an interface of a network, for the duration of a block."""
    with network.entered():
        packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL))
    with packets:
        packets.setblocking(False)
        packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        packets.bind((interface, _EVERY_PROTOCOL))
        yield Tap(packets)


def transport_of(frame: bytes) -> tuple[int, bytes]:
    """The protocol number, and the segment or datagram. DNS has no fragments and no extension headers here."""
    (kind,) = struct.unpack_from("!H", frame, 12)
    packet = frame[_ETHERNET:]
    if kind == _IPV4:
        (length,) = struct.unpack_from("!H", packet, 2)
        return packet[9], packet[(packet[0] & 0x0F) * 4 : length]
    if kind == _IPV6:
        (length,) = struct.unpack_from("!H", packet, 4)
        return packet[6], packet[_IPV6_HEADER : _IPV6_HEADER + length]
    return 0, b""


def _parse(octets: bytes, transport: str) -> Message:
    read = dns.message.from_wire(octets)
    question = read.question[0]
    is_reply = bool(octets[2] & 0x80)
    return Message(
        question.name.to_text(),
        dns.rdatatype.to_text(question.rdtype),
        transport,
        is_reply=is_reply,
        rcode=read.rcode(),
        answers=len(read.answer),
    )
