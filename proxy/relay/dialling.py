"""Connects a client to its backend: which addresses are tried, and which connection is used.

The law: nothing here waits, and nothing is sent to a backend before another one is tried. Addresses are tried as in RFC
8305 section 5: the next one when the last has failed or has not answered for a while; the first connection wins.
first_payload.py builds what the backend receives first.
"""

from __future__ import annotations

import errno
import os
import socket
from time import monotonic
from typing import Final

from proxy.backends.backend import Address, Backend
from proxy.backends.balancing import MOST
from proxy.backends.health import Cause, Failure, cause_of_connect
from proxy.relay.connection import Connection
from proxy.relay.core import Core
from proxy.relay.first_payload import CLIENT_LEFT, FirstPayload
from proxy.relay.headerless import HeaderlessSocket
from proxy.relay.loop_check import LOOP, LoopCheck, Verdict
from proxy.relay.side import End, Side, acknowledge_with_data, contain, reset_on_close
from proxy.tap.ended import Ending
from sidecar.loop.poller import BROKEN, READABLE, WRITABLE
from sidecar.loop.timing_wheel import NOWHERE, TICK
from sidecar.sockets.descriptors import EXHAUSTED

ATTEMPT_DELAY: Final = TICK / 2
"""Seconds until the next address is tried in parallel. The wheel adds up to a tick, so the mean is the 250 ms that RFC
8305 section 8 recommends, and the delay is never below its minimum of 100 ms."""

_STREAM: Final = int(socket.SOCK_STREAM | socket.SOCK_NONBLOCK)


class Dialling(FirstPayload):
    """A client whose backend is being connected."""

    __slots__ = (
        "_attempts",
        "_backend",
        "_closed",
        "_deadline",
        "_failure",
        "_untried",
        "slot",
    )

    def __init__(
        self, core: Core, backend: Backend, client: socket.SocketType, header: bytes, *, source: tuple[str, int]
    ) -> None:
        # Not super(), which takes as long as all that it calls: this runs once per connection.
        FirstPayload.__init__(self, core, client, header, source=source)
        self._backend = backend
        self._attempts: dict[Side, Address] = {}
        """The connecting sockets."""
        self._untried: tuple[Address, ...] = ()
        self._failure: Failure | None = None
        """Of the last failed attempt."""
        self._deadline = monotonic() + core.settings.connect_timeout
        self._closed = False
        self.slot = NOWHERE

    def start(self) -> None:
        """Connect, or wait for the name; a client that has left already costs its backend nothing."""
        if not self.read_payload() or (self.client_ended and not self.payload):
            # FIN without data may come from a half-closed client that wants to receive; but above all it is a probe of
            # a kubelet or a load balancer, every few seconds.
            self.ended = CLIENT_LEFT
            self.close(reset=not self.client_ended)
        elif self.verdict is Verdict.LOOP:
            self._refuse_loop()
        else:
            self._begin()

    def _begin(self) -> None:
        backend = self._backend
        self._untried = backend.order()
        self._failure = backend.failure
        if self._untried or self._failure is not None:
            self._try_next()
        else:
            self.core.wheel.schedule(self, self._deadline)
            backend.when_known(self._on_known)

    def _on_known(self) -> None:
        contain(self, self._begin)

    def handle(self, side: Side, events: int) -> None:
        """Handle an epoll event mask of a connecting socket."""
        if side not in self._attempts:
            return
        # The event may be meant for an earlier socket with this number, so read the error of this one.
        number = side.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if events & BROKEN else 0
        if number:
            self._attempt_failed(side, number)
        elif events & WRITABLE:
            self._connected(side)
            # It may still be connecting, after an event that was meant for an earlier socket.
            if events & READABLE and side.owner is not self:
                side.owner.handle(side, events)

    def on_due(self, now: float) -> None:
        """Begin another attempt, or fail at the connect timeout."""
        if now < self._deadline:
            self._try_next()
            return
        for address in self._attempts.values():
            self._backend.demote(address)
        timed_out = Failure(Cause.TIMEOUT, os.strerror(errno.ETIMEDOUT))
        self._fail(timed_out if self._attempts else self._failure or self._backend.pending())

    def close(self, *, reset: bool) -> None:
        """Close all sockets, with RST if `reset`. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._backend.forget(self._on_known)
        self._drop_attempts()
        if reset:
            reset_on_close(self.client)
        self.client.close()
        self.core.forget(self)

    def _try_next(self) -> None:
        """Begin another attempt; fail if none is left."""
        while self._untried and len(self._attempts) < MOST and not self._closed:
            address = self._untried[0]
            self._untried = self._untried[1:]
            number = self._dial(address)
            if number == 0:
                return
            self._note_failure(address, number)
        if self._closed:
            return
        if self._attempts:
            self.core.wheel.schedule(self, self._deadline)
        else:
            self._fail(self._failure or Failure(Cause.UNREACHABLE, "no address"))

    def _dial(self, address: Address) -> int:
        """Begin to connect; returns the errno of an immediate failure, or 0."""
        try:
            sock = socket.SocketType(address.family, _STREAM)
        except OSError as error:
            return error.errno or errno.EIO
        side = Side(self, sock)
        if self.payload:
            acknowledge_with_data(sock)
        number = sock.connect_ex(address.sockaddr)
        if number not in {0, errno.EINPROGRESS}:
            side.release(self.core.poller, reset=True)
            return number
        return self._begin_attempt(side, address)

    def _begin_attempt(self, side: Side, address: Address) -> int:
        # With a backend nearby the handshake is often complete by now; sending at once saves waiting for it.
        if self.payload:
            try:
                sent = self.send_first(side.sock)
            except BlockingIOError:
                pass
            except OSError as error:
                side.release(self.core.poller, reset=True)
                return error.errno or errno.EIO
            else:
                self._establish(side, address, sent, watched=False)
                return 0
        self._attempts[side] = address
        core = self.core
        side.room_watched = True
        core.poller.add(side.fd, side.handle, writable=True)
        more = self._untried and len(self._attempts) < MOST
        core.wheel.schedule(self, min(self._deadline, monotonic() + ATTEMPT_DELAY) if more else self._deadline)
        return 0

    def _attempt_failed(self, side: Side, number: int) -> None:
        address = self._attempts.pop(side)
        side.release(self.core.poller, reset=True)
        self._note_failure(address, number)
        if not self._closed:
            self._try_next()

    def _note_failure(self, address: Address, number: int) -> None:
        self._failure = Failure(cause_of_connect(number), os.strerror(number))
        if number not in EXHAUSTED:
            self._backend.demote(address)
            return
        # The backend is not at fault, and another address would need a descriptor as well.
        self.core.pause_accepting(os.strerror(number))
        self._untried = ()
        if not self._attempts:
            self.close(reset=True)

    def _connected(self, side: Side) -> None:
        if not self.read_payload():
            self.ended = CLIENT_LEFT
            self.close(reset=True)
            return
        if self.verdict is Verdict.LOOP:
            self._refuse_loop()
            return
        try:
            sent = self.send_first(side.sock)
        except BlockingIOError:
            return
        except OSError as error:
            self._attempt_failed(side, error.errno or errno.EIO)
            return
        self._establish(side, self._attempts.pop(side), sent, watched=True)

    def _establish(self, backend: Side, address: Address, sent: int, *, watched: bool) -> None:
        core = self.core
        self._closed = True
        if self._attempts:
            for slower in self._attempts.values():
                self._backend.demote(slower)
            self._drop_attempts()
        self._backend.note_connected(address)
        core.counters.octets_to_backend += len(self.payload)
        backend.address = address.sockaddr[:2]
        if sent < len(self.header) + len(self.payload):
            backend.pending = (self.header + self.payload)[sent:]
            backend.room_watched = True
        client = Side(self, self.client)
        client.moved = len(self.payload)
        idle_limit = core.idle_limits[bool(self.header)]
        connection = Connection(core, client, backend, nagle=self.is_short, idle_limit=idle_limit)
        core.replace(self, connection)
        if self.client_ended:
            client.end = End.FIN
            connection.pump(client)
        elif self.verdict is Verdict.UNDECIDED and not isinstance(self.client, HeaderlessSocket):
            client.owner = LoopCheck(core, connection, source=self.source, received=self.payload)
        for side in (client,) if watched else (backend, client):
            if side.fd >= 0:
                core.poller.add(side.fd, side.handle, writable=side.room_watched)

    def _refuse_loop(self) -> None:
        self.core.note_loop(self.source[0])
        self.ended = LOOP
        self.close(reset=True)

    def _fail(self, failure: Failure) -> None:
        self.core.counters.backend_errors[failure.cause] += 1
        self._backend.observe(failure)
        self.ended = (Ending.NO_BACKEND, failure.cause)
        self.close(reset=True)

    def _drop_attempts(self) -> None:
        for side in self._attempts:
            side.release(self.core.poller, reset=True)
        self._attempts.clear()
