"""The value of a PROXY header: source and destination of a connection.

The law: pure. v1.py and v2.py know the bytes. Source: "The PROXY protocol, versions 1 and 2" by Willy Tarreau
(haproxy's doc/proxy-protocol.txt); comments use its section numbers. Tested in test_header.py.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

from sidecar.values.endpoints import Endpoint


class BadHeader(ValueError):
    """Bytes that are no PROXY header of a TCP connection. Section 2: the receiver must not guess, but abort."""


@dataclass(frozen=True, slots=True)
class Header:
    """Source and destination of a connection; None for a connection of the proxy itself, such as a health check."""

    source: Endpoint | None
    destination: Endpoint | None


LOCAL: Final = Header(None, None)
"""For the proxy's own connections: LOCAL in version 2, and UNKNOWN in version 1, its closest form."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A header and its length in bytes; payload follows."""

    header: Header
    length: int


def one_family(source: str, destination: str) -> tuple[str, str]:
    """Both addresses in one family, IPv4 if possible, otherwise IPv6, without scopes.

    Sections 2.1 and 2.2 allow one family per header. A dual-stack socket shows IPv4 clients as IPv4-mapped addresses
    (RFC 4291 section 2.5.5.2), which no receiver would match against its IPv4 rules.
    """
    if ":" not in source and ":" not in destination:
        return source, destination
    source, destination = _unmapped(source), _unmapped(destination)
    if (":" in source) == (":" in destination):
        return source, destination
    return _mapped(source), _mapped(destination)


def _unmapped(host: str) -> str:
    if ":" not in host:
        return host
    host = host.partition("%")[0]
    if host.startswith("::ffff:") and "." in host:
        # The form that the kernel uses; parsing the address would cost as much as five system calls.
        return host[7:]
    address = ipaddress.IPv6Address(host)
    return str(address.ipv4_mapped or address)


def _mapped(host: str) -> str:
    return host if ":" in host else f"::ffff:{host}"
