"""The relay: listeners, the connections that come of them, their deadlines, and the end of it all.

The law: one trio task moves every octet. It waits for one descriptor (sidecar.poller) that stands for all sockets;
beside it run a clock for the deadlines and the look-ups of names, and no task, timer or pipe per connection. Sockets,
connections, pipes and tasks live and die inside Relay.serve.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Sequence
from time import monotonic
from typing import Final

import structlog
import trio

from proxy.backends.backend import OWN_LISTENER, Backend
from proxy.backends.discovery import follow_backends
from proxy.backends.name_resolver import LookUp
from proxy.relay.clients import Clients
from proxy.relay.connection import Connection
from proxy.relay.copying import BUFFER
from proxy.relay.counters import Counters
from proxy.relay.dialling import Dialling
from proxy.relay.limits import connection_limit, descriptor_limit
from proxy.relay.listener import ROUTE_FLAG, Listener
from proxy.relay.side import FAULT, contain
from proxy.relay.splice import Pipes, pipes_within
from proxy.settings import Settings
from sidecar.deadlines import NOWHERE, TICK, Wheel
from sidecar.endpoints import Endpoint
from sidecar.errors import StartError
from sidecar.listeners import bound_endpoint, listen_tcp
from sidecar.poller import Poller

_LINGER: Final = 0.001
"""Seconds: the answer of a backend that is near, or the next of many clients, comes within it."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def serve_relay(
    settings: Settings,
    *,
    listeners: Sequence[socket.socket] | None = None,
    stopping: trio.Event | None = None,
    task_status: trio.TaskStatus[list[Endpoint]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Relay until cancelled, or until `stopping` is set and the last connection has ended.

    `listeners`, one for each route (of listen_tcp), are opened here if none are given, and closed here in any case.
    `task_status.started` gives the endpoints in the order of the routes. Raises StartError.
    """
    relay = Relay(settings, open_listeners(settings) if listeners is None else listeners)
    await relay.serve(stopping=stopping, task_status=task_status)


def open_listeners(settings: Settings, *, shared: bool = False) -> list[socket.socket]:
    """A listening socket for each route, `shared` with other processes or not.

    Raises StartError; what was opened by then is closed again.
    """
    opened: list[socket.socket] = []
    try:
        opened.extend(listen_tcp(route.listen, flag=ROUTE_FLAG, shared=shared) for route in settings.routes)
    except BaseException:
        for listener in opened:
            listener.close()
        raise
    return opened


class Relay:
    """Everything between the listeners and the backends of one process."""

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[socket.socket],
        *,
        counters: Counters | None = None,
        look_up: LookUp | None = None,
        pipes: Pipes | None = None,
    ) -> None:
        self.settings = settings
        self._look_up = look_up
        self.counters = counters or Counters()
        self.poller = Poller()
        self.wheel: Wheel[Dialling | Connection] = Wheel(now=monotonic())
        self.buffer = bytearray(BUFFER)
        self.view = memoryview(self.buffer)
        endpoints = [bound_endpoint(listener) for listener in listeners]
        written = dict.fromkeys(route.backend for route in settings.routes)
        self.backends = {destination: Backend(destination, listeners=endpoints) for destination in written}
        soft = descriptor_limit()
        self.pipes = Pipes(most=pipes_within(soft)) if pipes is None else pipes
        self.listeners = [
            Listener(self, sock, self.backends[route.backend], write_header=settings.writer_of(route))
            for sock, route in zip(listeners, settings.routes, strict=True)
        ]
        self.limit = connection_limit(settings.max_connections, descriptors=soft)
        self.clients = Clients(most_each=settings.max_connections_per_client)
        self._alive: dict[Dialling | Connection, tuple[str, int]] = {}
        self._first_look = min(settings.idle_timeout, settings.half_close_timeout, 5.0)
        self._paused = False
        self._exhausted = False
        self._stopping = False
        self._empty = trio.Event()

    async def serve(
        self,
        *,
        stopping: trio.Event | None = None,
        task_status: trio.TaskStatus[list[Endpoint]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Relay until cancelled, or until `stopping` is set and the last connection has ended. Raises StartError."""
        with self.pipes:
            try:
                self._refuse_ourselves()
                with self.poller:
                    async with trio.open_nursery() as nursery:
                        follow = functools.partial(follow_backends, look_up=self._look_up)
                        await nursery.start(follow, list(self.backends.values()), self.settings)
                        nursery.start_soon(functools.partial(self.poller.run, linger=_LINGER))
                        nursery.start_soon(self._keep_time)
                        self._watch_listeners()
                        task_status.started([listener.endpoint for listener in self.listeners])
                        await (trio.Event() if stopping is None else stopping).wait()
                        await self._drain()
                        nursery.cancel_scope.cancel()
            finally:
                self._end()

    def admit(self, host: str, port: int) -> bool:
        """Whether a client may have one more connection; says so in the log where not."""
        if self.clients.enter(host, port):
            return True
        self.counters.refused += 1
        if self.clients.should_say(now=monotonic()):
            log.warning("client refused, it has too many connections", client=host, most=self.clients.most_each)
        return False

    def begin(self, dialling: Dialling, *, source: tuple[str, int]) -> None:
        """Take on a client that was admitted."""
        self.counters.connections += 1
        self.counters.active += 1
        self._alive[dialling] = source
        # As contain, without the call.
        try:
            dialling.start()
        except Exception:
            log.exception(FAULT)
            dialling.close(reset=True)

    def replace(self, dialling: Dialling, connection: Connection) -> None:
        """What was dialled is connected."""
        if dialling.slot != NOWHERE:
            self.wheel.cancel(dialling)
        self._alive[connection] = self._alive.pop(dialling)
        # Looked at first when most have ended; then it tells its real deadline.
        self.wheel.schedule(connection, connection.active_at + self._first_look)

    def forget(self, ended: Dialling | Connection) -> None:
        """A connection has ended."""
        self.wheel.cancel(ended)
        self.clients.leave(*self._alive.pop(ended))
        self.counters.active -= 1
        if self._stopping and not self._alive:
            self._empty.set()

    def pause_accepting(self, reason: str) -> None:
        """Leave new clients in the kernel's queue until the next tick; those that are connected notice nothing."""
        if not self._exhausted:
            log.warning("not accepting for now", reason=reason, connections=len(self._alive))
        self._exhausted = True
        self._pause()

    def may_accept(self) -> bool:
        """Whether there is room for one more client; accepting is paused where there is none."""
        if len(self._alive) >= self.limit:
            self.pause_accepting(f"{self.limit} connections are the limit")
        return not self._paused

    def _pause(self) -> None:
        self._paused = True
        for listener in self.listeners:
            self.poller.remove(listener.fd)

    def _watch_listeners(self) -> None:
        self._paused = False
        for listener in self.listeners:
            self.poller.add(listener.fd, listener.accept)

    async def _keep_time(self) -> None:
        while True:
            await trio.sleep(TICK)
            now = monotonic()
            for item in self.wheel.due(now):
                contain(item, item.on_due, now)
            if self._paused and len(self._alive) < self.limit and not self._stopping:
                self._watch_listeners()
            elif not self._paused:
                self._exhausted = False

    async def _drain(self) -> None:
        """Take no more clients, and let those that are connected finish."""
        for listener in self.listeners:
            # Those in the kernel's queue were promised a connection; closing the listener would reset them.
            if not self._paused:
                listener.accept(0)
        self._stopping = True
        self._close_listeners()
        if self._alive:
            log.info("draining", connections=len(self._alive))
            await self._empty.wait()

    def _close_listeners(self) -> None:
        for listener in self.listeners:
            if listener.sock.fileno() >= 0:
                self.poller.remove(listener.fd)
                listener.sock.close()

    def _end(self) -> None:
        if self._alive:
            log.warning("connections reset", connections=len(self._alive))
        for item in list(self._alive):
            item.close(reset=True)
        self._close_listeners()

    def _refuse_ourselves(self) -> None:
        for route in self.settings.routes:
            if self.backends[route.backend].failure is OWN_LISTENER:
                raise StartError(
                    f"{ROUTE_FLAG} {route}: {OWN_LISTENER.detail}; every connection would make another one"
                )
