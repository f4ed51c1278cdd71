"""Version 1 of the PROXY header: a line of text.

The law: pure. Format and parse are a pair: each reads what the other writes. Section numbers are those of haproxy's
doc/proxy-protocol.txt. Tested in test_header.py.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from proxy.header.addresses import LOCAL, BadHeader, Header, Parsed, one_family
from sidecar.values.endpoints import Endpoint, parse_port

MAXIMUM_V1: Final = 107
"""Length of the longest line in bytes, with CRLF (section 2.1)."""

_PREFIX: Final = b"PROXY "


def format_v1(header: Header) -> bytes:
    """The line of version 1 (section 2.1): no leading zeros, one space between fields, CRLF at the end."""
    if header.source is None or header.destination is None:
        return b"PROXY UNKNOWN\r\n"
    return write_v1(header.source.host, header.source.port, header.destination)


def write_v1(host: str, port: int, destination: Endpoint) -> bytes:
    """The same, from the client's address and port and its destination."""
    source, reached = one_family(host, destination.host)
    family = "TCP6" if ":" in source else "TCP4"
    return f"PROXY {family} {source} {reached} {port} {destination.port}\r\n".encode("ascii")


def parse_v1(octets: bytes) -> Parsed | None:
    """A version 1 header; None if it is incomplete. Raises BadHeader."""
    if octets[: len(_PREFIX)] != _PREFIX[: len(octets)]:
        raise BadHeader("this does not begin with a PROXY header")
    end = octets.find(b"\r\n", 0, MAXIMUM_V1)
    if end < 0:
        if len(octets) >= MAXIMUM_V1:
            raise BadHeader(f"no CRLF within {MAXIMUM_V1} octets")
        return None
    return Parsed(_parse_line(octets[len(_PREFIX) : end]), end + 2)


def _parse_line(line: bytes) -> Header:
    # Section 2.1: after UNKNOWN the receiver must ignore anything up to the CRLF.
    if line == b"UNKNOWN" or line.startswith(b"UNKNOWN "):
        return LOCAL
    fields = line.decode("latin-1").split(" ")
    if len(fields) != 5 or fields[0] not in {"TCP4", "TCP6"}:  # noqa: PLR2004  # family, two addresses, two ports
        raise BadHeader("not `TCP4|TCP6 SOURCE DESTINATION PORT PORT`")
    family, source, destination, source_port, destination_port = fields
    return Header(
        Endpoint(_parse_address(source, family), _parse_port(source_port)),
        Endpoint(_parse_address(destination, family), _parse_port(destination_port)),
    )


def _parse_address(text: str, family: str) -> str:
    # The format has no scopes (%eth0): accepting one would forward an address that the sender did not mean.
    try:
        address = ipaddress.IPv4Address(text) if family == "TCP4" else ipaddress.IPv6Address(text)
    except ValueError:
        raise BadHeader(f"{text[:64]!a} is not a {family} address") from None
    if "%" in text:
        raise BadHeader("an address with a scope")
    return str(address)


def _parse_port(text: str) -> int:
    if text.startswith("0") and text != "0":
        raise BadHeader("a port with leading zeros")
    try:
        return parse_port(text, lowest=0)
    except ValueError as error:
        raise BadHeader(str(error)) from None
