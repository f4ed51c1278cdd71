"""Sockets that listen, made from endpoints. A failure is a StartError that says what to do.

The law: this is the only place that binds; an open socket is returned non-blocking, or closed.
"""

from __future__ import annotations

import errno
import os
import socket
from ipaddress import IPv6Address
from typing import Final

from sidecar.sockets.socket_address import endpoint_of, family_of, socket_address
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError

_ADVICE: Final = {
    errno.EADDRINUSE: "the address is in use; stop the program that has it, or choose another port",
    errno.EACCES: "not permitted; ports below 1024 need CAP_NET_BIND_SERVICE, so choose a port from 1024 up",
    errno.EADDRNOTAVAIL: "no network interface here has this address",
    errno.EAFNOSUPPORT: "there is no IPv6 here",
    errno.EMFILE: "no file descriptor is left; raise the limit (ulimit -n)",
}


BACKLOG: Final = 4096
"""Clients that may wait in the kernel's queue: its own default limit (net.core.somaxconn)."""

_PORTS: Final = 20
"""Ports that the system may choose until one is free for TCP and for UDP."""


def listen_tcp(endpoint: Endpoint, *, flag: str, backlog: int = BACKLOG, shared: bool = False) -> socket.socket:
    """A non-blocking TCP socket that listens. Raises StartError naming flag and address.

    `[::]` is every address, IPv4 included, also if the kernel has no IPv6. `shared` lets other processes of this user
    listen there too; the kernel distributes connections and datagrams among them (SO_REUSEPORT, socket(7)).
    """
    bound = _bind(endpoint, socket.SOCK_STREAM, flag, shared)
    try:
        bound.listen(backlog)
    except OSError as error:
        # Two sockets may be bound alike with SO_REUSEADDR; the second is refused only here.
        bound.close()
        raise _start_error(endpoint, flag, error) from error
    return bound


def claim_tcp(endpoint: Endpoint, *, flag: str, is_first: bool) -> socket.socket:
    """A socket that is bound but does not listen: it reserves the port that several listen_tcp calls then share.

    `is_first`: nobody may listen there yet, not even one who shares the port: a second program would take half of the
    clients without a word. Raises StartError naming flag and address, also if another program has the port exclusively.
    """
    claimed = _bind(endpoint, socket.SOCK_STREAM, flag, shared=not is_first)
    if is_first:
        claimed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return claimed


def listen_udp(endpoint: Endpoint, *, flag: str, shared: bool = False) -> socket.socket:
    """A non-blocking UDP socket that is bound. Raises StartError naming flag and address; otherwise as listen_tcp."""
    return _bind(endpoint, socket.SOCK_DGRAM, flag, shared)


def listen_both(endpoint: Endpoint, *, flag: str, shared: bool = False) -> tuple[socket.socket, socket.socket]:
    """A TCP and a UDP socket on the same port. Raises StartError naming flag and address; otherwise as listen_tcp.

    For port 0 the system chooses a port that is free for TCP; one that another program has for UDP is tried no more.
    """
    for attempt in range(_PORTS):
        stream = listen_tcp(endpoint, flag=flag, shared=shared)
        try:
            return stream, listen_udp(bound_endpoint(stream), flag=flag, shared=shared)
        except StartError as error:
            stream.close()
            taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
            if endpoint.port or not taken or attempt == _PORTS - 1:
                raise
    raise AssertionError


def bound_endpoint(bound: socket.socket) -> Endpoint:
    """Where a socket is bound; for port 0, with the port that the operating system chose."""
    return endpoint_of(bound.getsockname())


def _bind(endpoint: Endpoint, kind: socket.SocketKind, flag: str, shared: bool) -> socket.socket:
    try:
        return _bind_one(endpoint, kind, shared)
    except OSError as error:
        if endpoint.host == "::" and error.errno in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}:
            return _bind(Endpoint("0.0.0.0", endpoint.port), kind, flag, shared)
        raise _start_error(endpoint, flag, error) from error


def _bind_one(endpoint: Endpoint, kind: socket.SocketKind, shared: bool) -> socket.socket:
    family = family_of(endpoint)
    opened = socket.socket(family, kind | socket.SOCK_NONBLOCK)
    try:
        if kind == socket.SOCK_STREAM:
            # A restart must not wait for connections in TIME-WAIT.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            # The sysctl net.ipv6.bindv6only must not decide what [::] means. An IPv4 address in the form of IPv6 is no
            # address of IPv6 alone.
            both = endpoint.host == "::" or IPv6Address(endpoint.host).ipv4_mapped is not None
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not both)
        opened.bind(socket_address(endpoint))
    except BaseException:
        opened.close()
        raise
    return opened


def _start_error(endpoint: Endpoint, flag: str, error: OSError) -> StartError:
    number = error.errno or 0
    return StartError(f"{flag} {endpoint}: {_ADVICE.get(number) or os.strerror(number)}")
