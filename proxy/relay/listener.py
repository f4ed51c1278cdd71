"""One listening socket: accepts a client, builds its header, and starts its connection to the backend.

The law: a failed accept costs one client or a pause; it never ends the relay. A client's destination is the address
that it connected to, or with --original-destination the one before a redirect by this computer's firewall (nft
`redirect`, iptables REDIRECT). Accepting is tested in test_relay.py.
"""

from __future__ import annotations

import errno
import functools
import socket
import struct
from typing import Final

from proxy.backends.backend import Backend
from proxy.header.protocol import ProxyProtocol, writer
from proxy.relay.core import Core
from proxy.relay.dialling import Dialling
from proxy.relay.endpoint_dialling import EndpointDialling, EndpointHeaders
from proxy.relay.headerless import HeaderlessSocket
from proxy.relay.side import keep_urgent_data, reset_on_close, send_at_once
from proxy.routes import Route
from sidecar.sockets.descriptors import EXHAUSTED
from sidecar.sockets.listeners import BACKLOG, bound_endpoint
from sidecar.values.endpoints import Endpoint

# The number without its enum, which would cost a look-up per use. For the same reason socket.SocketType: socket.socket
# adds only the time to create and close it.
_STREAM: Final = int(socket.SOCK_STREAM)

_ACCEPTS: Final = 64
"""Clients per call, before other connections have their turn."""

# Errors of accept(2) for a connection that failed before it was accepted.
_GONE: Final = frozenset(
    {
        errno.ECONNABORTED,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENONET,
        errno.ENOPROTOOPT,
        errno.ENOTCONN,
        errno.EOPNOTSUPP,
        errno.EPERM,
        errno.EPROTO,
    }
)

# linux/netfilter_ipv4.h and linux/netfilter_ipv6/ip6_tables.h: the same number, each at its own level.
_SO_ORIGINAL_DST: Final = 80
_IPV4: Final = struct.Struct("!2xH4s8x")
_IPV6: Final = struct.Struct("!2xH4x16s4x")
_MAPPED: Final = "::ffff:"


class Listener:
    """One listening socket."""

    __slots__ = (
        "_core",
        "_destination",
        "_endpoint_headers",
        "_family",
        "_limited",
        "_redirected",
        "_refuses_headers",
        "_stated_port",
        "_write_header",
        "backend",
        "endpoint",
        "fd",
        "sock",
    )

    def __init__(self, core: Core, sock: socket.socket, route: Route, backend: Backend) -> None:
        self._core = core
        self.sock = sock
        self.fd = sock.fileno()
        self._family = int(sock.family)
        # Accepted sockets inherit this: data from a backend must not wait for the ACK of earlier data.
        send_at_once(sock)
        # This too: the first payload is read before an event could announce an urgent octet.
        keep_urgent_data(sock)
        self.endpoint = bound_endpoint(sock)
        self.set_route(route, backend)

    def set_route(self, route: Route, backend: Backend) -> None:
        """Relay further clients as this route says; those that have been accepted keep theirs."""
        settings = self._core.settings
        protocol = settings.protocol_of(route)
        self.backend = backend
        self._write_header = writer(protocol, checksum=settings.crc32c)
        self._endpoint_headers = (
            EndpointHeaders(protocol, route.exceptions, checksum=settings.crc32c) if route.exceptions else None
        )
        self._refuses_headers = protocol is ProxyProtocol.NONE and not route.exceptions
        # All clients of a load balancer have its address, so only a limit that was asked for applies to them.
        self._limited = protocol is not ProxyProtocol.PASS or settings.max_connections_per_client is not None
        stated = settings.advertise.get(self.endpoint.port) if route.stated_port is None else route.stated_port
        self._stated_port = self.endpoint.port if stated is None else stated
        self._redirected = settings.original_destination and stated is None
        # With one listening address, every client has the same destination.
        everywhere = self.endpoint.host in {"::", "0.0.0.0"}
        fixed = not everywhere and not self._redirected
        self._destination = Endpoint(self.endpoint.host, self._stated_port) if fixed else None

    def accept(self, _events: int) -> None:
        """Accept the waiting clients, at most _ACCEPTS of them."""
        if self._accept_some():
            # Adding it again makes the poller report further clients, after the descriptors that are ready now.
            self._core.poller.remove(self.fd)
            self._core.poller.add(self.fd, self.accept)

    def accept_queue(self) -> None:
        """Accept all clients in the kernel's queue; a flood of new ones does not prolong this for ever."""
        for _ in range(BACKLOG // _ACCEPTS):
            if not self._accept_some():
                return

    def _accept_some(self) -> bool:
        """Accept at most _ACCEPTS clients; whether more may wait."""
        for _ in range(_ACCEPTS):
            try:
                # What accept() calls; accept() also looks up the enums of family and type each time.
                descriptor, source = self.sock._accept()  # type: ignore[attr-defined]  # of the C class
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self._core.pause_accepting(str(error))
                    return False
                if error.errno not in _GONE:
                    raise
            else:
                if self._refuses_headers:
                    client = self._headerless(descriptor, source[0])
                else:
                    client = socket.SocketType(self._family, _STREAM, 0, descriptor)
                self._begin(client, source)
                if not self._core.may_accept():
                    return False
        return True

    def _headerless(self, descriptor: int, host: str) -> socket.SocketType:
        return HeaderlessSocket(self._family, descriptor, on_header=functools.partial(self._core.note_header, host))

    def _begin(self, client: socket.SocketType, source: tuple[str, int]) -> None:
        client.setblocking(False)
        try:
            destination = self._destination or self._destination_of(client)
        except OSError:
            # A client that is gone has no addresses, and needs no backend (its header would be UNKNOWN).
            client.close()
            return
        host, port = source[0], source[1]
        if not self._core.admit(host, port, route=self.endpoint, limited=self._limited):
            reset_on_close(client)
            client.close()
            return
        source = host, port
        if self._endpoint_headers is None:
            dialling = Dialling(
                self._core, self.backend, client, self._write_header(host, port, destination), source=source
            )
        else:
            dialling = EndpointDialling(
                self._core, self.backend, client, self._endpoint_headers, source=source, destination=destination
            )
        self._core.begin(dialling, source=source, route=self.endpoint)

    def _destination_of(self, client: socket.SocketType) -> Endpoint:
        if self._redirected:
            return original_destination(client)
        return Endpoint(client.getsockname()[0], self._stated_port)


def original_destination(client: socket.SocketType) -> Endpoint:
    """The destination before a redirect; without a redirect, the socket's own address.

    Raises OSError if the client is gone.
    """
    host, port, *_ = client.getsockname()
    try:
        if ":" not in host or host.startswith(_MAPPED):
            port, packed = _IPV4.unpack(client.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, _IPV4.size))
            return Endpoint(socket.inet_ntop(socket.AF_INET, packed), port)
        port, packed = _IPV6.unpack(client.getsockopt(socket.IPPROTO_IPV6, _SO_ORIGINAL_DST, _IPV6.size))
        return Endpoint(socket.inet_ntop(socket.AF_INET6, packed), port)
    except OSError:
        return Endpoint(host, port)
