"""Version 2 of the PROXY header: fixed fields, then type-length-value entries (TLV).

The law: pure. Format and parse are a pair: each reads what the other writes. Section numbers are those of haproxy's
doc/proxy-protocol.txt. Tested in test_header.py.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from typing import Final

from proxy.header.addresses import LOCAL, BadHeader, Header, Parsed, one_family
from sidecar.values.endpoints import Endpoint

SIGNATURE_V2: Final = b"\r\n\r\n\0\r\nQUIT\n"

_FIXED: Final = struct.Struct("!12sBBH")
_LOCAL: Final = 0x20
_PROXY: Final = 0x21
_UNSPEC: Final = 0x00
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_BLOCK: Final = {_TCP4: struct.Struct("!4s4sHH"), _TCP6: struct.Struct("!16s16sHH")}
_TLV: Final = struct.Struct("!BH")
_TYPE_CRC32C: Final = 0x03
_CHECKSUM: Final = struct.Struct("!I")
_NO_CHECKSUM: Final = _TLV.pack(_TYPE_CRC32C, _CHECKSUM.size) + bytes(_CHECKSUM.size)
"""The TLV during the computation of the checksum (section 2.2.3)."""


def format_v2(header: Header, *, checksum: bool = False) -> bytes:
    """The binary form of version 2 (section 2.2); with `checksum`, a CRC32c of the header is its only TLV."""
    command, family, block = _block(header)
    tail = _NO_CHECKSUM if checksum else b""
    octets = _FIXED.pack(SIGNATURE_V2, command, family, len(block) + len(tail)) + block + tail
    return octets[: -_CHECKSUM.size] + _CHECKSUM.pack(crc32c(octets)) if checksum else octets


def _block(header: Header) -> tuple[int, int, bytes]:
    """Command, family, and address block."""
    if header.source is None or header.destination is None:
        return _LOCAL, _UNSPEC, b""
    source, destination = (ipaddress.ip_address(h) for h in one_family(header.source.host, header.destination.host))
    family = _TCP6 if source.version == 6 else _TCP4  # noqa: PLR2004  # as in IPv6
    ports = header.source.port, header.destination.port
    return _PROXY, family, _BLOCK[family].pack(source.packed, destination.packed, *ports)


def parse_v2(octets: bytes) -> Parsed | None:
    """A version 2 header; None if it is incomplete. Raises BadHeader.

    TLVs are skipped, but must fit into the header, and a checksum must be correct (section 2.2.3). Datagram and UNIX
    families are refused, because a TCP proxy sends neither.
    """
    if octets[: len(SIGNATURE_V2)] != SIGNATURE_V2[: len(octets)]:
        raise BadHeader("this does not begin with the signature of version 2")
    if len(octets) < _FIXED.size:
        return None
    _, command, family, length = _FIXED.unpack_from(octets)
    _check_fixed(command, family, length)
    end = _FIXED.size + length
    if len(octets) < end:
        return None
    header = _parse_block(command, family, octets[_FIXED.size : end])
    if command == _PROXY and family != _UNSPEC:
        _check_tlvs(octets[:end], _FIXED.size + _BLOCK[family].size)
    return Parsed(header, end)


def _check_fixed(command: int, family: int, length: int) -> None:
    if command not in {_LOCAL, _PROXY}:
        raise BadHeader(f"version and command 0x{command:02x} are unknown")
    if command == _PROXY and family != _UNSPEC and family not in _BLOCK:
        raise BadHeader(f"family and transport 0x{family:02x} are not TCP")
    if command == _PROXY and family in _BLOCK and length < _BLOCK[family].size:
        raise BadHeader(f"{length} octets are too few for two addresses and ports")


def _parse_block(command: int, family: int, block: bytes) -> Header:
    # Section 2.2: with LOCAL the receiver must discard the address block, whatever its family.
    if command == _LOCAL or family == _UNSPEC:
        return LOCAL
    layout = _BLOCK[family]
    source, destination, source_port, destination_port = layout.unpack_from(block)
    return Header(
        Endpoint(str(ipaddress.ip_address(source)), source_port),
        Endpoint(str(ipaddress.ip_address(destination)), destination_port),
    )


def _check_tlvs(octets: bytes, position: int) -> None:
    """Check the TLVs of a complete header, from `position`."""
    for kind, start, length in _tlvs(octets, position):
        if kind == _TYPE_CRC32C:
            if length != _CHECKSUM.size:
                raise BadHeader(f"a checksum of {length} octets")
            _check_sum(octets, start)


def _tlvs(octets: bytes, position: int) -> Iterator[tuple[int, int, int]]:
    """Type, start and length of each TLV's value."""
    while position < len(octets):
        if position + _TLV.size > len(octets):
            raise BadHeader("a TLV is truncated")
        kind, length = _TLV.unpack_from(octets, position)
        position += _TLV.size
        if position + length > len(octets):
            raise BadHeader("a TLV is longer than the header")
        yield kind, position, length
        position += length


def _check_sum(octets: bytes, start: int) -> None:
    end = start + _CHECKSUM.size
    if _CHECKSUM.unpack_from(octets, start)[0] != crc32c(octets[:start] + bytes(_CHECKSUM.size) + octets[end:]):
        raise BadHeader("the checksum is wrong")


# CRC32c (RFC 3309 appendix B, RFC 9260 appendix A) costs 0.1 µs per byte here: 4 µs for a header, a twentieth of what a
# connection costs. A C library would save most of that, but needs a wheel for each processor and libc.

_POLYNOMIAL: Final = 0x82F63B78
"""The Castagnoli polynomial, bit-reversed: the lowest bit of a byte comes first."""
_ALL_ONES: Final = 0xFFFF_FFFF


def _entry(octet: int) -> int:
    for _ in range(8):
        octet = octet >> 1 ^ (_POLYNOMIAL if octet & 1 else 0)
    return octet


_TABLE: Final = tuple(map(_entry, range(256)))


def crc32c(octets: bytes) -> int:
    """The 32-bit checksum of `octets`."""
    table, remainder = _TABLE, _ALL_ONES
    for octet in octets:
        remainder = table[(remainder ^ octet) & 0xFF] ^ remainder >> 8
    return remainder ^ _ALL_ONES
