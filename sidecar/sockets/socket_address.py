"""Endpoints as the socket module wants them, and back.

The law: the scope of an IPv6 address (RFC 4007) goes along. The socket module takes it as a number behind the port and
nowhere else: left in the text, it is lost, and a link-local address without its scope cannot be reached.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

from sidecar.values.endpoints import Endpoint

_LONGEST: Final = 9  # digits: what always fits the 32 bits of an interface's number

SocketAddress = tuple[str, int] | tuple[str, int, int, int]


def family_of(endpoint: Endpoint) -> socket.AddressFamily:
    """The address family of an endpoint."""
    return socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET


def socket_address(endpoint: Endpoint) -> SocketAddress:
    """What bind() and connect() take. Raises OSError for a scope that is no interface here."""
    host, percent, scope = endpoint.host.partition("%")
    if not percent:
        return endpoint.host, endpoint.port
    return host, endpoint.port, 0, _interface(scope)


def _interface(scope: str) -> int:
    if scope.isascii() and scope.isdigit() and len(scope) <= _LONGEST:
        return int(scope)
    try:
        return socket.if_nametoindex(scope)
    except ValueError:
        # A text that the system has no form for, such as one with a NUL in it.
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from None


def endpoint_of(address: tuple[object, ...]) -> Endpoint:
    """The endpoint of an IPv4 or IPv6 address, as getsockname() gives it."""
    host, port, *more = address
    scope = more[1] if more else 0
    if not isinstance(scope, int) or not scope:
        return Endpoint(str(host), int(str(port)))
    return Endpoint(f"{host}%{socket.if_indextoname(scope)}", int(str(port)))
