"""The PROXY protocol header: the addresses of a connection, told to the next hop before its first octet.

The law: pure, and a value: what it looks like on the wire is of header_v1 and header_v2. Source: "The
PROXY protocol, versions 1 and 2" by Willy Tarreau, haproxy's doc/proxy-protocol.txt; sections below are its sections.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

from sidecar.endpoints import Endpoint


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


def one_family(source: str, destination: str) -> tuple[str, str]:
    """Both addresses in the family that the header names: IPv4 where both can be, else IPv6, scopes dropped.

    Sections 2.1 and 2.2 know one family per header. A dual-stack socket shows IPv4 clients as IPv4-mapped addresses
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
        # The form in which every kernel shows one; the long way takes as long as five system calls.
        return host[7:]
    address = ipaddress.IPv6Address(host)
    return str(address.ipv4_mapped or address)


def _mapped(host: str) -> str:
    return host if ":" in host else f"::ffff:{host}"
