"""One listening socket: from a client in the kernel's queue to a dialling with its header.

The law: a failed accept costs the client that failed, or a pause; it never ends the relay.
"""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, Final

from proxy.header.protocol import Writer
from proxy.relay.dialling import EXHAUSTED, Dialling
from proxy.relay.first_payload import send_at_once
from proxy.relay.redirected import original_destination
from proxy.relay.side import reset_on_close
from sidecar.endpoints import Endpoint
from sidecar.listeners import bound_endpoint

if TYPE_CHECKING:
    from proxy.backends.backend import Backend
    from proxy.relay.relay import Relay

ROUTE_FLAG: Final = "--route"

# Of socket, without its enum: each use would look a name up. socket.SocketType is the class below socket.socket, which
# adds nothing here but the time to make and close one.
_STREAM: Final = int(socket.SOCK_STREAM)

_ACCEPTS: Final = 64
"""Connections taken before the others get their turn."""

# What accept(2) reports of a connection that failed before it was taken.
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


class Listener:
    """One listening socket with what its connections need."""

    __slots__ = (
        "_advertised",
        "_destination",
        "_family",
        "_redirected",
        "_relay",
        "_write_header",
        "endpoint",
        "fd",
        "sock",
        "target",
    )

    def __init__(self, relay: Relay, sock: socket.socket, target: Backend, *, write_header: Writer) -> None:
        settings = relay.settings
        self._relay = relay
        self.sock = sock
        self.fd = sock.fileno()
        self._family = int(sock.family)
        # Accepted sockets inherit it: what a backend sends must not wait for the acknowledgement of what came before.
        send_at_once(sock)
        self.target = target
        self.endpoint = bound_endpoint(sock)
        self._write_header = write_header
        stated = settings.advertise.get(self.endpoint.port)
        self._advertised = self.endpoint.port if stated is None else stated
        self._redirected = settings.original_destination and stated is None
        # One address only is what every client of this listener has dialled.
        everywhere = self.endpoint.host in {"::", "0.0.0.0"}
        fixed = not everywhere and not self._redirected
        self._destination = Endpoint(self.endpoint.host, self._advertised) if fixed else None

    def accept(self, _events: int) -> None:
        """Take the connections that wait, at most a turn's worth."""
        for _ in range(_ACCEPTS):
            try:
                # As accept does it, which would also look up the names of its family and type for each connection.
                descriptor, source = self.sock._accept()  # type: ignore[attr-defined]  # of the C class
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self._relay.pause_accepting(str(error))
                    return
                if error.errno not in _GONE:
                    raise
            else:
                self._begin(socket.SocketType(self._family, _STREAM, 0, descriptor), source)
                if not self._relay.may_accept():
                    return
        # Added anew, it is reported anew if there are more, and behind those that were ready by now.
        self._relay.poller.remove(self.fd)
        self._relay.poller.add(self.fd, self.accept)

    def _begin(self, client: socket.SocketType, source: tuple[str, int]) -> None:
        client.setblocking(False)
        try:
            destination = self._destination or self._dialled(client)
        except OSError:
            # A client that is gone has no addresses to tell, and needs no backend (the header would say UNKNOWN).
            client.close()
            return
        host, port = source[0], source[1]
        if not self._relay.admit(host, port):
            reset_on_close(client)
            client.close()
            return
        header = self._write_header(host, port, destination)
        dialling = Dialling(self._relay, self.target, client, header, source=(host, port))
        self._relay.begin(dialling, source=(host, port))

    def _dialled(self, client: socket.SocketType) -> Endpoint:
        if self._redirected:
            return original_destination(client)
        return Endpoint(client.getsockname()[0], self._advertised)
