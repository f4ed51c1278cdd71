"""The time between a client's connection and its backend's: which addresses to try, and what to say first.

The law: nothing here waits, and nothing was sent to a backend before it is given up for another one. Addresses are
tried as RFC 8305 section 5 has it: the next one when the last has failed or has not answered for a while, and whoever
connects first is taken. The header and what the client has said by then leave in one send; a client that says nothing
first does not hold the header back.
"""

from __future__ import annotations

import errno
import os
import socket
from time import monotonic
from typing import TYPE_CHECKING, Final

from proxy.backend import OWN_LISTENER
from proxy.byte_path import BUFFER
from proxy.clients import FIRST_OCTETS, Words
from proxy.connection import Connection
from proxy.hearing import Hearing
from proxy.readiness import Cause, Failure, cause_of_connect
from proxy.side import End, Side, contain, reset_on_close
from proxy.wheel import NOWHERE, TICK
from sidecar.poller import BROKEN, READABLE, WRITABLE

if TYPE_CHECKING:
    from proxy.backend import Address, Backend
    from proxy.relay import Relay

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What means "not now" rather than "not there": the limits of this process and of the system."""

ATTEMPT_DELAY: Final = TICK / 2
"""Seconds until the next address is tried beside the last one. The wheel adds up to a tick, so it is 250 ms in the
middle, as RFC 8305 section 8 recommends, and never less than its least of 100 ms."""


class Dialling:
    """A client that waits for its backend. Its socket is not watched yet: its payload is fetched when it is wanted."""

    __slots__ = (
        "_attempts",
        "_client",
        "_client_ended",
        "_closed",
        "_deadline",
        "_failure",
        "_header",
        "_payload",
        "_relay",
        "_source",
        "_target",
        "_untried",
        "_words",
        "slot",
    )

    def __init__(
        self, relay: Relay, target: Backend, client: socket.socket, header: bytes, *, source: tuple[str, int]
    ) -> None:
        self._relay = relay
        self._target = target
        self._client = client
        self._source = source
        self._header = header
        self._payload = b""
        self._words = Words.TOO_FEW
        self._client_ended = False
        self._attempts: dict[Side, Address] = {}
        """The sockets that are connecting."""
        self._untried: tuple[Address, ...] = ()
        self._failure: Failure | None = None
        """Of the last attempt that failed."""
        self._deadline = monotonic() + relay.settings.connect_timeout
        self._closed = False
        self.slot = NOWHERE

    def start(self) -> None:
        """Dial, or wait for the name; a client that has left already costs its backend nothing."""
        if not self._fetch_payload() or (self._client_ended and not self._payload):
            # With no octet and an end, it may be a half-closed one that wants to listen; but above all it is a probe
            # of a kubelet or a load balancer, which come every few seconds.
            self.close(reset=not self._client_ended)
        elif not self._closed:
            self._begin()

    def _begin(self) -> None:
        target = self._target
        self._untried = target.order()
        self._failure = target.failure
        if self._untried or self._failure is not None:
            self._try_next()
        else:
            self._relay.wheel.schedule(self, self._deadline)
            target.when_known(self._on_known)

    def _on_known(self) -> None:
        contain(self, self._begin)

    def handle(self, side: Side, events: int) -> None:
        """Take in an event mask of a socket that is connecting."""
        if side not in self._attempts:
            return
        # An event may be of an earlier socket with this number, so an error is asked for.
        number = side.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if events & BROKEN else 0
        if number:
            self._attempt_failed(side, number)
        elif events & WRITABLE:
            self._connected(side)
            if events & READABLE and side.fd >= 0:
                side.owner.handle(side, events)

    def on_due(self, now: float) -> None:
        """It is time for another attempt, or the time for all of them is over."""
        if now < self._deadline:
            self._try_next()
            return
        for address in self._attempts.values():
            self._target.demote(address)
        silent = Failure(Cause.TIMEOUT, os.strerror(errno.ETIMEDOUT))
        self._fail(silent if self._attempts else self._failure or self._target.pending())

    def close(self, *, reset: bool) -> None:
        """End all sockets. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._target.forget(self._on_known)
        self._drop_attempts()
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
        if self._payload and self._payload[0] not in FIRST_OCTETS:
            # Nearly everybody; the look would cost each connection a microsecond.
            self._words = Words.HARMLESS
            return True
        host, port = self._source
        self._words = self._relay.clients.look_at(self._payload, host=host, port=port)
        if self._words is Words.OURS:
            self._fail(OWN_LISTENER)
        return True

    def _try_next(self) -> None:
        """Begin another attempt; the end of it all where there is none left."""
        while self._untried and not self._closed:
            address, *rest = self._untried
            self._untried = tuple(rest)
            number = self._dial(address)
            if number == 0:
                return
            self._note_failure(address, number)
        if self._closed:
            return
        if self._attempts:
            self._relay.wheel.schedule(self, self._deadline)
        else:
            self._fail(self._failure or Failure(Cause.UNREACHABLE, "no address"))

    def _dial(self, address: Address) -> int:
        """Begin to connect; the errno of what failed at once, or 0."""
        try:
            sock = socket.socket(address.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            return error.errno or errno.EIO
        side = Side(self, sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = sock.connect_ex(address.target)
        if number not in {0, errno.EINPROGRESS}:
            side.release(self._relay.poller, reset=True)
            return number
        return self._begin_attempt(side, address)

    def _begin_attempt(self, side: Side, address: Address) -> int:
        # Next door the handshake is often over by now; one send then saves the wait for it.
        if self._payload:
            try:
                sent = side.sock.send(self._header + self._payload)
            except BlockingIOError:
                pass
            except OSError as error:
                side.release(self._relay.poller, reset=True)
                return error.errno or errno.EIO
            else:
                self._establish(side, address, sent, watched=False)
                return 0
        self._attempts[side] = address
        relay = self._relay
        side.room_watched = True
        relay.poller.add(side.fd, side.handle, writable=True)
        relay.wheel.schedule(
            self, min(self._deadline, monotonic() + ATTEMPT_DELAY) if self._untried else self._deadline
        )
        return 0

    def _attempt_failed(self, side: Side, number: int) -> None:
        address = self._attempts.pop(side)
        side.release(self._relay.poller, reset=True)
        self._note_failure(address, number)
        if not self._closed:
            self._try_next()

    def _note_failure(self, address: Address, number: int) -> None:
        self._failure = Failure(cause_of_connect(number), os.strerror(number))
        if number not in EXHAUSTED:
            self._target.demote(address)
            return
        # No fault of the backend; another address would need a descriptor as well.
        self._relay.pause_accepting(os.strerror(number))
        self._untried = ()
        if not self._attempts:
            self.close(reset=True)

    def _connected(self, side: Side) -> None:
        if not self._fetch_payload():
            self.close(reset=True)
        if self._closed:
            return
        try:
            sent = side.sock.send(self._header + self._payload) if self._header or self._payload else 0
        except BlockingIOError:
            return
        except OSError as error:
            self._attempt_failed(side, error.errno or errno.EIO)
            return
        self._establish(side, self._attempts.pop(side), sent, watched=True)

    def _establish(self, backend: Side, address: Address, sent: int, *, watched: bool) -> None:
        relay = self._relay
        self._closed = True
        for slower in self._attempts.values():
            self._target.demote(slower)
        self._drop_attempts()
        self._target.note_connected(address)
        relay.counters.octets_to_backend += len(self._payload)
        backend.pending = (self._header + self._payload)[sent:]
        backend.room_watched |= bool(backend.pending)
        client = Side(self, self._client)
        connection = Connection(relay, client, backend)
        relay.replace(self, connection)
        if self._client_ended:
            client.end = End.FIN
            connection.pump(client)
        elif self._words is Words.TOO_FEW:
            client.owner = Hearing(connection, self._target, source=self._source, said=self._payload)
        for side in (client,) if watched else (backend, client):
            if side.fd >= 0:
                relay.poller.add(side.fd, side.handle, writable=side.room_watched)

    def _fail(self, failure: Failure) -> None:
        self._relay.counters.backend_errors[failure.cause] += 1
        self._target.observe(failure)
        self.close(reset=True)

    def _drop_attempts(self) -> None:
        for side in self._attempts:
            side.release(self._relay.poller, reset=True)
        self._attempts.clear()
