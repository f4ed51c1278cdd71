"""What the tap reads from packets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import dns.message
import pytest

from tests.clients.tap import Tap, transport_of

QUERY = dns.message.make_query("app.example.org", "AAAA").to_wire()
REPLY = dns.message.make_response(dns.message.from_wire(QUERY)).to_wire()
FRAMED = len(QUERY).to_bytes(2, "big") + QUERY


def ethernet(kind: int, packet: bytes) -> bytes:
    return bytes(12) + struct.pack("!H", kind) + packet


def ipv4(protocol: int, segment: bytes, *, options: bytes = b"", padding: bytes = b"") -> bytes:
    size = 20 + len(options)
    head = struct.pack("!BBHHHBBH8x", 0x40 | size // 4, 0, size + len(segment), 0, 0, 64, protocol, 0)
    return ethernet(0x0800, head + options + segment + padding)


def ipv6(protocol: int, segment: bytes) -> bytes:
    return ethernet(0x86DD, struct.pack("!IHBB32x", 6 << 28, len(segment), protocol, 64) + segment)


def udp(message: bytes, source: int = 40_000, target: int = 53) -> bytes:
    return struct.pack("!HHHH", source, target, 8 + len(message), 0) + message


def tcp(octets: bytes, source: int = 40_000, target: int = 53) -> bytes:
    return struct.pack("!HHIIBBHHH", source, target, 0, 0, 5 << 4, 0x18, 0, 0, 0) + octets


@pytest.fixture
def wire() -> Iterator[tuple[socket.socket, Tap]]:
    """The far end of a tap."""
    far, near = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.setblocking(False)
    with far, near:
        yield far, Tap(near)


@pytest.mark.parametrize(
    ("frames", "seen"),
    [
        ([ipv4(17, udp(QUERY))], [("UDP", False)]),
        ([ipv6(17, udp(QUERY))], [("UDP", False)]),
        ([ipv4(17, udp(QUERY), options=bytes(4), padding=bytes(9))], [("UDP", False)]),
        ([ipv4(17, udp(REPLY, 53, 40_000))], [("UDP", True)]),
        ([ipv4(17, udp(QUERY)), ipv4(17, udp(QUERY))], [("UDP", False)] * 2),
        ([ipv6(6, tcp(b"")), ipv6(6, tcp(FRAMED))], [("TCP", False)]),
        ([ipv4(6, tcp(FRAMED[:1])), ipv4(6, tcp(FRAMED[1:30])), ipv4(6, tcp(FRAMED[30:]))], [("TCP", False)]),
        ([ipv4(6, tcp(FRAMED + FRAMED))], [("TCP", False)] * 2),
        ([ipv4(6, tcp(FRAMED[:9])), ipv4(6, tcp(FRAMED, 40_001)), ipv4(6, tcp(FRAMED[9:]))], [("TCP", False)] * 2),
        ([ipv4(17, udp(b"x", 40_000, 443)), ethernet(0x0806, bytes(28)), ipv6(58, bytes(24))], []),
    ],
    ids=[
        "UDP over IPv4",
        "UDP over IPv6",
        "options and padding",
        "a reply",
        "a retransmission",
        "TCP",
        "TCP in pieces",
        "two in a segment",
        "two connections",
        "no DNS",
    ],
)
def test_messages_are_read_from_frames(
    wire: tuple[socket.socket, Tap], frames: list[bytes], seen: list[tuple[str, bool]]
) -> None:
    far, tap = wire
    for frame in frames:
        far.send(frame)
    read = tap.read()
    assert [(message.transport, message.is_reply) for message in read] == seen
    assert {(message.name, message.type) for message in read} <= {("app.example.org.", "AAAA")}
    assert tap.read() == []


def test_the_segment_of_an_unknown_frame_is_empty() -> None:
    assert transport_of(ethernet(0x88CC, b"lldp")) == (0, b"")
