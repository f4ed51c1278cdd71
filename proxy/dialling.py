"""The time between a client's connection and its backend's: which address to try, and what to say first.

The law: nothing here waits, and nothing was sent to a backend before it is given up for another one. The header and
what the client has said by then leave in one send; a client that says nothing first does not hold the header back.
"""

from __future__ import annotations

import errno
import os
import socket
from time import monotonic
from typing import TYPE_CHECKING, Final

from proxy.connection import BUFFER, Connection
from proxy.readiness import Cause, Failure, cause_of_connect
from proxy.side import End, Side, contain, reset_on_close
from proxy.wheel import NOWHERE, TICK
from sidecar.poller import BROKEN, READABLE, WRITABLE

if TYPE_CHECKING:
    from proxy.backend import Address, Backend
    from proxy.relay import Relay

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What means "not now" rather than "not there": the limits of this process and of the system."""


class Dialling:
    """A client that waits for its backend. Its socket is not watched yet: its payload is fetched when it is wanted."""

    __slots__ = (
        "_address",
        "_backend",
        "_client",
        "_client_ended",
        "_closed",
        "_deadline",
        "_header",
        "_payload",
        "_relay",
        "_target",
        "_untried",
        "slot",
    )

    def __init__(self, relay: Relay, target: Backend, client: socket.socket, header: bytes) -> None:
        self._relay = relay
        self._target = target
        self._client = client
        self._header = header
        self._payload = b""
        self._client_ended = False
        self._backend: Side | None = None
        self._address: Address | None = None
        self._untried: tuple[Address, ...] = ()
        self._deadline = monotonic() + relay.settings.connect_timeout
        self._closed = False
        self.slot = NOWHERE

    def start(self) -> None:
        """Dial, or wait for the name; a client that has left already costs its backend nothing."""
        if not self._fetch_payload():
            self.close(reset=True)
        elif self._target.addresses or self._target.failure is not None:
            self._resolved()
        else:
            self._relay.wheel.schedule(self, self._deadline)
            self._target.when_resolved(self._on_resolved)

    def _resolved(self) -> None:
        self._untried = self._target.addresses
        self._try_next(self._target.failure)

    def _on_resolved(self) -> None:
        contain(self, self._resolved)

    def handle(self, _side: Side, events: int) -> None:
        """Take in an event mask of the backend's socket."""
        backend = self._backend
        if backend is None:
            return
        # An event may be of an earlier socket with this number, so an error is asked for.
        number = backend.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if events & BROKEN else 0
        if number:
            self._attempt_failed(number)
        elif events & WRITABLE:
            self._connected(backend)
            if events & READABLE and backend.fd >= 0:
                backend.owner.handle(backend, events)

    def on_due(self, now: float) -> None:
        """The present attempt, or the whole, has had its time."""
        if self._backend is not None:
            self._attempt_failed(errno.ETIMEDOUT)
        elif now >= self._deadline:
            self._fail(Failure(Cause.DNS_TIMEOUT, "the name is not resolved yet"))

    def close(self, *, reset: bool) -> None:
        """End both sockets. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._target.forget(self._on_resolved)
        self._drop_backend()
        if reset:
            reset_on_close(self._client)
        self._client.close()
        self._relay.forget(self)

    def _fetch_payload(self) -> bool:
        """Take what the client has said by now; False where it is gone."""
        if self._payload or self._client_ended:
            return True
        try:
            self._payload = self._client.recv(BUFFER)
        except BlockingIOError:
            return True
        except OSError:
            return False
        # No octet and no error is FIN: it may still want to hear what the backend says.
        self._client_ended = not self._payload
        return True

    def _try_next(self, failure: Failure | None) -> None:
        while self._untried and not self._closed:
            self._address, *rest = self._untried
            self._untried = tuple(rest)
            number = self._dial(self._address)
            if number == 0:
                return
            failure = self._note_failure(self._address, number)
        if not self._closed:
            self._fail(failure or Failure(Cause.UNREACHABLE, "no address"))

    def _dial(self, address: Address) -> int:
        """Begin to connect; the errno of what failed at once, or 0."""
        try:
            sock = socket.socket(address.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            return error.errno or errno.EIO
        self._backend = Side(self, sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = sock.connect_ex(address.target)
        if number not in {0, errno.EINPROGRESS}:
            self._drop_backend()
            return number
        return self._begin_attempt(self._backend)

    def _begin_attempt(self, backend: Side) -> int:
        # Next door the handshake is often over by now; one send then saves the wait for it.
        if self._payload:
            try:
                sent = backend.sock.send(self._header + self._payload)
            except BlockingIOError:
                pass
            except OSError as error:
                self._drop_backend()
                return error.errno or errno.EIO
            else:
                self._establish(backend, sent, watched=False)
                return 0
        self._relay.poller.add(backend.fd, backend.handle, writable=True)
        self._relay.wheel.schedule(self, self._attempt_deadline())
        return 0

    def _attempt_deadline(self) -> float:
        """Every address gets its share of the time that is left, so that a silent one cannot use it all."""
        now = monotonic()
        return now + max(TICK, (self._deadline - now) / (1 + len(self._untried)))

    def _attempt_failed(self, number: int) -> None:
        self._drop_backend()
        failure = self._note_failure(self._address, number)
        if monotonic() >= self._deadline:
            self._untried = ()
        self._try_next(failure)

    def _note_failure(self, address: Address | None, number: int) -> Failure:
        if number in EXHAUSTED:
            # No fault of the backend; another address would need a descriptor as well.
            self._relay.pause_accepting(os.strerror(number))
            self.close(reset=True)
        elif address is not None:
            self._target.demote(address)
        return Failure(cause_of_connect(number), os.strerror(number))

    def _connected(self, backend: Side) -> None:
        if not self._fetch_payload():
            self.close(reset=True)
            return
        try:
            sent = backend.sock.send(self._header + self._payload) if self._header or self._payload else 0
        except BlockingIOError:
            return
        except OSError as error:
            self._attempt_failed(error.errno or errno.EIO)
            return
        self._establish(backend, sent, watched=True)

    def _establish(self, backend: Side, sent: int, *, watched: bool) -> None:
        relay = self._relay
        self._backend = None
        self._closed = True
        self._target.observe(None)
        relay.counters.octets_to_backend += len(self._payload)
        backend.pending = (self._header + self._payload)[sent:]
        client = Side(self, self._client)
        connection = Connection(relay, client, backend)
        relay.replace(self, connection)
        if self._client_ended:
            client.end = End.FIN
            connection.pump(client)
        for side in (client,) if watched else (backend, client):
            if side.fd >= 0:
                relay.poller.add(side.fd, side.handle, writable=True)

    def _fail(self, failure: Failure) -> None:
        self._relay.counters.backend_errors[failure.cause] += 1
        self._target.observe(failure)
        self.close(reset=True)

    def _drop_backend(self) -> None:
        if self._backend is not None:
            self._backend.release(self._relay.poller, reset=True)
            self._backend = None
