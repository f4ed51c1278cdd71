"""The time between a client's connection and its backend's: which addresses to try, and which one is taken.

The law: nothing here waits, and nothing was sent to a backend before it is given up for another one. Addresses are
tried as RFC 8305 section 5 has it: the next one when the last has failed or has not answered for a while, and whoever
connects first is taken. What it hears then is proxy.relay.first_payload's.
"""

from __future__ import annotations

import errno
import os
import socket
from time import monotonic
from typing import TYPE_CHECKING, Final

from proxy.backends.backend import OWN_LISTENER
from proxy.backends.health import Cause, Failure, cause_of_connect
from proxy.relay.clients import Words
from proxy.relay.connection import Connection
from proxy.relay.first_payload import Opening
from proxy.relay.loop_check import Hearing
from proxy.relay.side import End, Side, contain, reset_on_close
from sidecar.deadlines import NOWHERE, TICK
from sidecar.poller import BROKEN, READABLE, WRITABLE

if TYPE_CHECKING:
    from proxy.backends.backend import Address, Backend
    from proxy.relay.relay import Relay

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What means "not now" rather than "not there": the limits of this process and of the system."""

ATTEMPT_DELAY: Final = TICK / 2
"""Seconds until the next address is tried beside the last one. The wheel adds up to a tick, so it is 250 ms in the
middle, as RFC 8305 section 8 recommends, and never less than its least of 100 ms."""


_STREAM: Final = int(socket.SOCK_STREAM | socket.SOCK_NONBLOCK)


class Dialling(Opening):
    """A client whose backend is being reached."""

    __slots__ = (
        "_attempts",
        "_closed",
        "_deadline",
        "_failure",
        "_target",
        "_untried",
        "slot",
    )

    def __init__(
        self, relay: Relay, target: Backend, client: socket.SocketType, header: bytes, *, source: tuple[str, int]
    ) -> None:
        # Not super(), which takes as long as all that it calls; one of these is made for each connection.
        Opening.__init__(self, relay, client, header, source=source)
        self._target = target
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
        if not self.listen() or (self.client_ended and not self.payload):
            # With no octet and an end, it may be a half-closed one that wants to listen; but above all it is a probe
            # of a kubelet or a load balancer, which come every few seconds.
            self.close(reset=not self.client_ended)
        elif self.words is Words.OURS:
            self._fail(OWN_LISTENER)
        else:
            self._begin()

    def _begin(self) -> None:
        target = self._target
        self._untried = target.order()
        self._failure = target.failure
        if self._untried or self._failure is not None:
            self._try_next()
        else:
            self.relay.wheel.schedule(self, self._deadline)
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
            reset_on_close(self.client)
        self.client.close()
        self.relay.forget(self)

    def _try_next(self) -> None:
        """Begin another attempt; the end of it all where there is none left."""
        while self._untried and not self._closed:
            address = self._untried[0]
            self._untried = self._untried[1:]
            number = self._dial(address)
            if number == 0:
                return
            self._note_failure(address, number)
        if self._closed:
            return
        if self._attempts:
            self.relay.wheel.schedule(self, self._deadline)
        else:
            self._fail(self._failure or Failure(Cause.UNREACHABLE, "no address"))

    def _dial(self, address: Address) -> int:
        """Begin to connect; the errno of what failed at once, or 0."""
        try:
            sock = socket.SocketType(address.family, _STREAM)
        except OSError as error:
            return error.errno or errno.EIO
        side = Side(self, sock)
        number = sock.connect_ex(address.target)
        if number not in {0, errno.EINPROGRESS}:
            side.release(self.relay.poller, reset=True)
            return number
        return self._begin_attempt(side, address)

    def _begin_attempt(self, side: Side, address: Address) -> int:
        # Next door the handshake is often over by now; one send then saves the wait for it.
        if self.payload:
            try:
                sent = self.say(side.sock)
            except BlockingIOError:
                pass
            except OSError as error:
                side.release(self.relay.poller, reset=True)
                return error.errno or errno.EIO
            else:
                self._establish(side, address, sent, watched=False)
                return 0
        self._attempts[side] = address
        relay = self.relay
        side.room_watched = True
        relay.poller.add(side.fd, side.handle, writable=True)
        relay.wheel.schedule(
            self, min(self._deadline, monotonic() + ATTEMPT_DELAY) if self._untried else self._deadline
        )
        return 0

    def _attempt_failed(self, side: Side, number: int) -> None:
        address = self._attempts.pop(side)
        side.release(self.relay.poller, reset=True)
        self._note_failure(address, number)
        if not self._closed:
            self._try_next()

    def _note_failure(self, address: Address, number: int) -> None:
        self._failure = Failure(cause_of_connect(number), os.strerror(number))
        if number not in EXHAUSTED:
            self._target.demote(address)
            return
        # No fault of the backend; another address would need a descriptor as well.
        self.relay.pause_accepting(os.strerror(number))
        self._untried = ()
        if not self._attempts:
            self.close(reset=True)

    def _connected(self, side: Side) -> None:
        if not self.listen():
            self.close(reset=True)
            return
        if self.words is Words.OURS:
            self._fail(OWN_LISTENER)
            return
        try:
            sent = self.say(side.sock)
        except BlockingIOError:
            return
        except OSError as error:
            self._attempt_failed(side, error.errno or errno.EIO)
            return
        self._establish(side, self._attempts.pop(side), sent, watched=True)

    def _establish(self, backend: Side, address: Address, sent: int, *, watched: bool) -> None:
        relay = self.relay
        self._closed = True
        if self._attempts:
            for slower in self._attempts.values():
                self._target.demote(slower)
            self._drop_attempts()
        self._target.note_connected(address)
        relay.counters.octets_to_backend += len(self.payload)
        if sent < len(self.header) + len(self.payload):
            backend.pending = (self.header + self.payload)[sent:]
            backend.room_watched = True
        client = Side(self, self.client)
        connection = Connection(relay, client, backend, nagle=self.is_short)
        relay.replace(self, connection)
        if self.client_ended:
            client.end = End.FIN
            connection.pump(client)
        elif self.words is Words.TOO_FEW:
            client.owner = Hearing(connection, self._target, source=self.source, said=self.payload)
        for side in (client,) if watched else (backend, client):
            if side.fd >= 0:
                relay.poller.add(side.fd, side.handle, writable=side.room_watched)

    def _fail(self, failure: Failure) -> None:
        self.relay.counters.backend_errors[failure.cause] += 1
        self._target.observe(failure)
        self.close(reset=True)

    def _drop_attempts(self) -> None:
        for side in self._attempts:
            side.release(self.relay.poller, reset=True)
        self._attempts.clear()
