"""The PROXY protocol header: the addresses of a connection, told to the next hop before its first octet.

The law: pure, and a pair of format and parse for each version, so that what one writes the other reads. Source: "The
PROXY protocol, versions 1 and 2" by Willy Tarreau, haproxy's doc/proxy-protocol.txt; sections below are its sections.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from proxy.crc32c import crc32c
from sidecar.endpoints import Endpoint, parse_port

SIGNATURE_V2: Final = b"\r\n\r\n\0\r\nQUIT\n"
MAXIMUM_V1: Final = 107
"""Octets of the longest version 1 line, CRLF included (section 2.1)."""

_PREFIX_V1: Final = b"PROXY "
_FIXED_V2: Final = struct.Struct("!12sBBH")
_LOCAL: Final = 0x20
_PROXY: Final = 0x21
_UNSPEC: Final = 0x00
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_BLOCK_V2: Final = {_TCP4: struct.Struct("!4s4sHH"), _TCP6: struct.Struct("!16s16sHH")}
_TLV: Final = struct.Struct("!BH")
_TYPE_CRC32C: Final = 0x03
_CHECKSUM: Final = struct.Struct("!I")
_NO_CHECKSUM: Final = _TLV.pack(_TYPE_CRC32C, _CHECKSUM.size) + bytes(_CHECKSUM.size)
"""The TLV as it is while the checksum is taken (section 2.2.3)."""


class ProxyProtocol(StrEnum):
    """Which header goes in front of a connection."""

    V1 = "v1"
    V2 = "v2"
    NONE = "none"


class BadHeader(ValueError):
    """Octets that are no PROXY header of a TCP connection; section 2: the receiver must not guess, but abort."""


@dataclass(frozen=True, slots=True)
class Header:
    """Who connected, and to where. Neither is known of a connection that the proxy makes for itself, a health check."""

    source: Endpoint | None
    destination: Endpoint | None


LOCAL: Final = Header(None, None)
"""For the proxy's own connections: LOCAL in version 2, UNKNOWN in version 1 (which has nothing closer)."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A header and the number of octets that it took; what follows them is payload."""

    header: Header
    length: int


def formatter(protocol: ProxyProtocol, *, checksum: bool = False) -> Callable[[Header], bytes]:
    """What writes the headers of a protocol; NONE writes no octet. Only version 2 has a place for a checksum."""
    if protocol is ProxyProtocol.NONE:
        return _format_nothing
    return format_v1 if protocol is ProxyProtocol.V1 else partial(format_v2, checksum=checksum)


def _format_nothing(_header: Header) -> bytes:
    return b""


def format_v1(header: Header) -> bytes:
    """The line of version 1 (section 2.1): no leading zeros, one space between fields, CRLF at the end."""
    if header.source is None or header.destination is None:
        return b"PROXY UNKNOWN\r\n"
    source, destination = _one_family(header.source.host, header.destination.host)
    family = "TCP6" if ":" in source else "TCP4"
    return f"PROXY {family} {source} {destination} {header.source.port} {header.destination.port}\r\n".encode("ascii")


def format_v2(header: Header, *, checksum: bool = False) -> bytes:
    """The binary form of version 2 (section 2.2), with a CRC32c of the whole as its only TLV if asked for."""
    command, family, block = _block_v2(header)
    tail = _NO_CHECKSUM if checksum else b""
    octets = _FIXED_V2.pack(SIGNATURE_V2, command, family, len(block) + len(tail)) + block + tail
    return octets[: -_CHECKSUM.size] + _CHECKSUM.pack(crc32c(octets)) if checksum else octets


def _block_v2(header: Header) -> tuple[int, int, bytes]:
    """Command, family, and the addresses."""
    if header.source is None or header.destination is None:
        return _LOCAL, _UNSPEC, b""
    source, destination = (ipaddress.ip_address(h) for h in _one_family(header.source.host, header.destination.host))
    family = _TCP6 if source.version == 6 else _TCP4  # noqa: PLR2004  # as in IPv6
    ports = header.source.port, header.destination.port
    return _PROXY, family, _BLOCK_V2[family].pack(source.packed, destination.packed, *ports)


def parse_header(octets: bytes) -> Parsed | None:
    """The header that a stream begins with, of either version; None while more octets are needed.

    Raises BadHeader as soon as the octets cannot become one.
    """
    if octets[: len(SIGNATURE_V2)] == SIGNATURE_V2[: len(octets)]:
        return parse_v2(octets)
    return parse_v1(octets)


def parse_v1(octets: bytes) -> Parsed | None:
    """A version 1 header; None while it is incomplete. Raises BadHeader."""
    if octets[: len(_PREFIX_V1)] != _PREFIX_V1[: len(octets)]:
        raise BadHeader("this does not begin with a PROXY header")
    end = octets.find(b"\r\n", 0, MAXIMUM_V1)
    if end < 0:
        if len(octets) >= MAXIMUM_V1:
            raise BadHeader(f"no CRLF within {MAXIMUM_V1} octets")
        return None
    return Parsed(_parse_line(octets[len(_PREFIX_V1) : end]), end + 2)


def _parse_line(line: bytes) -> Header:
    # Section 2.1: after UNKNOWN the receiver must ignore anything up to the CRLF.
    if line == b"UNKNOWN" or line.startswith(b"UNKNOWN "):
        return LOCAL
    fields = line.decode("latin-1").split(" ")
    if len(fields) != 5 or fields[0] not in {"TCP4", "TCP6"}:  # noqa: PLR2004  # family, two addresses, two ports
        raise BadHeader("not `TCP4|TCP6 SOURCE DESTINATION PORT PORT`")
    family, source, destination, source_port, destination_port = fields
    return Header(
        Endpoint(_parse_address_v1(source, family), _parse_port_v1(source_port)),
        Endpoint(_parse_address_v1(destination, family), _parse_port_v1(destination_port)),
    )


def _parse_address_v1(text: str, family: str) -> str:
    # A scope (%eth0) is no part of the format: accepting it would forward an address that the sender never meant.
    try:
        address = ipaddress.IPv4Address(text) if family == "TCP4" else ipaddress.IPv6Address(text)
    except ValueError:
        raise BadHeader(f"{text[:64]!a} is no address of {family}") from None
    if "%" in text:
        raise BadHeader("an address with a scope")
    return str(address)


def _parse_port_v1(text: str) -> int:
    if text.startswith("0") and text != "0":
        raise BadHeader("a port with leading zeros")
    try:
        return parse_port(text, lowest=0)
    except ValueError as error:
        raise BadHeader(str(error)) from None


def parse_v2(octets: bytes) -> Parsed | None:
    """A version 2 header; None while it is incomplete. Raises BadHeader.

    TLVs are skipped, but must fit, and a checksum among them must be right (section 2.2.3). Datagram and UNIX families
    are refused: a TCP proxy sends neither.
    """
    if octets[: len(SIGNATURE_V2)] != SIGNATURE_V2[: len(octets)]:
        raise BadHeader("this does not begin with the signature of version 2")
    if len(octets) < _FIXED_V2.size:
        return None
    _, command, family, length = _FIXED_V2.unpack_from(octets)
    _check_fixed_v2(command, family, length)
    end = _FIXED_V2.size + length
    if len(octets) < end:
        return None
    header = _parse_block_v2(command, family, octets[_FIXED_V2.size : end])
    if command == _PROXY and family != _UNSPEC:
        _check_tlvs(octets[:end], _FIXED_V2.size + _BLOCK_V2[family].size)
    return Parsed(header, end)


def _check_fixed_v2(command: int, family: int, length: int) -> None:
    if command not in {_LOCAL, _PROXY}:
        raise BadHeader(f"version and command 0x{command:02x} are not known")
    if command == _PROXY and family != _UNSPEC and family not in _BLOCK_V2:
        raise BadHeader(f"family and transport 0x{family:02x} are not TCP")
    if command == _PROXY and family in _BLOCK_V2 and length < _BLOCK_V2[family].size:
        raise BadHeader(f"{length} octets are too few for two addresses and ports")


def _parse_block_v2(command: int, family: int, block: bytes) -> Header:
    # Section 2.2: with LOCAL the receiver must discard the address block, whatever its family.
    if command == _LOCAL or family == _UNSPEC:
        return LOCAL
    layout = _BLOCK_V2[family]
    source, destination, source_port, destination_port = layout.unpack_from(block)
    return Header(
        Endpoint(str(ipaddress.ip_address(source)), source_port),
        Endpoint(str(ipaddress.ip_address(destination)), destination_port),
    )


def _check_tlvs(octets: bytes, position: int) -> None:
    """Look at the TLVs of a whole header from a position on."""
    for kind, start, length in _tlvs(octets, position):
        if kind == _TYPE_CRC32C:
            if length != _CHECKSUM.size:
                raise BadHeader(f"a checksum of {length} octets")
            _check_sum(octets, start)


def _tlvs(octets: bytes, position: int) -> Iterator[tuple[int, int, int]]:
    """Type, begin and length of each value."""
    while position < len(octets):
        if position + _TLV.size > len(octets):
            raise BadHeader("a TLV is cut")
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


def _one_family(source: str, destination: str) -> tuple[str, str]:
    """Both addresses in the family that the header names: IPv4 where both can be, else IPv6, scopes dropped.

    Sections 2.1 and 2.2 know one family per header. A dual-stack socket shows IPv4 clients as IPv4-mapped addresses
    (RFC 4291 section 2.5.5.2), which no receiver would match against its IPv4 rules.
    """
    source, destination = _unmapped(source), _unmapped(destination)
    if (":" in source) == (":" in destination):
        return source, destination
    return _mapped(source), _mapped(destination)


def _unmapped(host: str) -> str:
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    return str(address.ipv4_mapped or address)


def _mapped(host: str) -> str:
    return host if ":" in host else f"::ffff:{host}"
