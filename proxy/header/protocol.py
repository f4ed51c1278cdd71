"""Chooses and detects the version of a PROXY header.

The law: pure. v1.py and v2.py know the bytes. Tested in test_header.py.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, StrEnum
from functools import partial
from typing import Final

from proxy.header.addresses import Header, Parsed
from proxy.header.v1 import format_v1, parse_v1, write_v1
from proxy.header.v2 import SIGNATURE_V2, format_v2, parse_v2
from sidecar.values.endpoints import Endpoint

Writer = Callable[[str, int, Endpoint], bytes]
"""Returns the bytes of a header for the client's address, its port, and its destination."""


class ProxyProtocol(StrEnum):
    """The header at the start of a connection."""

    V1 = "v1"
    V2 = "v2"
    NONE = "none"
    """No header; a client that sends one of its own is refused."""
    PASS = "pass"  # noqa: S105  # no password
    """No header of the relay; a client's own passes."""


def formatter(protocol: ProxyProtocol, *, checksum: bool = False) -> Callable[[Header], bytes]:
    """The format function of a protocol; NONE and PASS return no bytes. Only version 2 can hold a checksum."""
    if protocol in {ProxyProtocol.NONE, ProxyProtocol.PASS}:
        return _format_nothing
    return format_v1 if protocol is ProxyProtocol.V1 else partial(format_v2, checksum=checksum)


def _format_nothing(_header: Header) -> bytes:
    return b""


def writer(protocol: ProxyProtocol, *, checksum: bool = False) -> Writer:
    """The same as formatter(), without creating a Header per connection."""
    if protocol is ProxyProtocol.V1:
        return write_v1
    format_header = formatter(protocol, checksum=checksum)
    return lambda host, port, destination: format_header(Header(Endpoint(host, port), destination))


class Beginning(Enum):
    """What the first octets of a stream are."""

    HEADER = "the beginning of a header"
    NO_HEADER = "anything else"
    UNDECIDED = "too few"


LONGEST_BEGINNING: Final = 5
"""Octets that decide: pires/go-proxyproto compares no more of version 1 (SIGV1), and only version 2 has the NUL."""
_BEGINNINGS: Final = (b"PROXY", SIGNATURE_V2[:LONGEST_BEGINNING])


def beginning_of(octets: bytes) -> Beginning:
    """What the first octets of a stream are; as soon as no header can begin with them, NO_HEADER."""
    if octets.startswith(_BEGINNINGS):
        return Beginning.HEADER
    if any(one.startswith(octets) for one in _BEGINNINGS):
        return Beginning.UNDECIDED
    return Beginning.NO_HEADER


def parse_header(octets: bytes) -> Parsed | None:
    """The header at the start of a stream, of either version; None if it is incomplete.

    Raises BadHeader as soon as the bytes cannot become a header.
    """
    if octets[: len(SIGNATURE_V2)] == SIGNATURE_V2[: len(octets)]:
        return parse_v2(octets)
    return parse_v1(octets)
