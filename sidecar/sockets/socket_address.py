"""From an Endpoint to an address of the socket module, and back.

The law: the scope of an IPv6 address (RFC 4007) is kept. The socket module takes it only as a number after the port; in
the text it would be ignored, and a link-local address without its scope cannot be reached.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

from sidecar.values.endpoints import Endpoint

_LONGEST: Final = 9  # digits; these always fit the 32 bits of an interface number

SocketAddress = tuple[str, int] | tuple[str, int, int, int]


def family_of(endpoint: Endpoint) -> socket.AddressFamily:
    """The address family of an endpoint."""
    return socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET


def socket_address(endpoint: Endpoint) -> SocketAddress:
    """The argument of bind() and connect(). Raises OSError if the scope is not an interface of this host."""
    host, percent, scope = endpoint.host.partition("%")
    if not percent:
        return endpoint.host, endpoint.port
    return host, endpoint.port, 0, _interface(scope)


def _interface(scope: str) -> int:
    if scope.isascii() and scope.isdigit() and len(scope) <= _LONGEST:
        return int(scope)
    try:
        return socket.if_nametoindex(scope)
    except (OSError, ValueError):
        # ValueError: the system cannot represent such a name, for example one with a NUL in it.
        # Before Python 3.14 the OSError has no errno.
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from None


def endpoint_of(address: tuple[object, ...]) -> Endpoint:
    """The endpoint of an IPv4 or IPv6 address, as getsockname() returns it."""
    host, port, *more = address
    scope = more[1] if more else 0
    if not isinstance(scope, int) or not scope:
        return Endpoint(str(host), int(str(port)))
    return Endpoint(f"{host}%{socket.if_indextoname(scope)}", int(str(port)))
