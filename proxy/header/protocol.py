"""Which PROXY header goes in front of a connection, and what writes and reads it.

The law: pure; the forms themselves are of header_v1 and header_v2.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial

from proxy.header.addresses import Header, Parsed
from proxy.header.v1 import format_v1, parse_v1, write_v1
from proxy.header.v2 import SIGNATURE_V2, format_v2, parse_v2
from sidecar.endpoints import Endpoint

Writer = Callable[[str, int, Endpoint], bytes]
"""Gives the octets of a header from the client's address and port, and where it connected to."""


class ProxyProtocol(StrEnum):
    """Which header goes in front of a connection."""

    V1 = "v1"
    V2 = "v2"
    NONE = "none"


def formatter(protocol: ProxyProtocol, *, checksum: bool = False) -> Callable[[Header], bytes]:
    """What writes the headers of a protocol; NONE writes no octet. Only version 2 has a place for a checksum."""
    if protocol is ProxyProtocol.NONE:
        return _format_nothing
    return format_v1 if protocol is ProxyProtocol.V1 else partial(format_v2, checksum=checksum)


def _format_nothing(_header: Header) -> bytes:
    return b""


def writer(protocol: ProxyProtocol, *, checksum: bool = False) -> Writer:
    """As formatter, but without a Header for each connection."""
    if protocol is ProxyProtocol.V1:
        return write_v1
    format_header = formatter(protocol, checksum=checksum)
    return lambda host, port, destination: format_header(Header(Endpoint(host, port), destination))


def parse_header(octets: bytes) -> Parsed | None:
    """The header that a stream begins with, of either version; None while more octets are needed.

    Raises BadHeader as soon as the octets cannot become one.
    """
    if octets[: len(SIGNATURE_V2)] == SIGNATURE_V2[: len(octets)]:
        return parse_v2(octets)
    return parse_v1(octets)
