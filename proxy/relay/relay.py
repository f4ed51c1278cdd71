"""The relay: listeners, connections and deadlines, from start to drain.

The law: one loop moves every byte. It waits for one poller, which stands for all sockets: the host of the program
(loop/host.py), or a task under trio alone. Two tasks run the deadlines and keep the addresses of backends current; no
connection has a task, timer or pipe of its own. Sockets, connections, pipes and tasks exist only within Relay.serve.
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
from proxy.relay.core import Core
from proxy.relay.listener import Listener
from proxy.relay.splice import Pipes
from proxy.routes import ROUTE_FLAG, Route
from proxy.settings import Settings
from sidecar.loop.timing_wheel import TICK
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError

LISTENING: Final = "cannot listen on"
"""In place of the flag in a message about a port that no flag names."""
_LINGER: Final = 0.001
"""Seconds; within it comes the answer of a backend nearby, or the next event of many clients."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def open_listeners(settings: Settings, *, shared: bool = False) -> list[socket.socket]:
    """Open a listening socket for each route; `shared` lets other processes listen on the same port.

    Raises StartError, and closes the sockets that it had opened.
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
    """The listeners of one process, and all connections behind them."""

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[socket.socket],
        *,
        shared: bool = False,
        look_up: LookUp | None = None,
        pipes: Pipes | None = None,
    ) -> None:
        """`listeners` are those of open_listeners, and so is `shared`; serve closes them."""
        self.core = core = Core(settings, pipes=pipes)
        self._shared = shared
        self._look_up = look_up
        endpoints = [bound_endpoint(listener) for listener in listeners]
        destinations = dict.fromkeys(route.backend for route in settings.routes)
        self.backends = {one: Backend(one, listeners=endpoints) for one in destinations}
        self._fixed = [
            Listener(core, sock, route, self.backends[route.backend])
            for sock, route in zip(listeners, settings.routes, strict=True)
        ]
        self._opened: dict[Endpoint, Listener] = {}
        core.listeners.extend(self._fixed)

    @property
    def listeners(self) -> list[Listener]:
        """All listeners: those of the flags' routes, in their order, and the opened ones."""
        return [*self._fixed, *self._opened.values()]

    async def serve(
        self,
        *,
        stopping: trio.Event | None = None,
        task_status: trio.TaskStatus[list[Endpoint]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Relay until cancelled, or until `stopping` is set and the last connection has ended.

        `task_status.started` returns the endpoints in the order of the routes. Raises StartError.
        """
        core = self.core
        with core.pipes:
            try:
                self._refuse_own_listeners()
                with core.poller:
                    async with trio.open_nursery() as nursery:
                        follow = functools.partial(follow_backends, look_up=self._look_up)
                        await nursery.start(follow, list(self.backends.values()), core.settings)
                        nursery.start_soon(functools.partial(core.poller.run, linger=_LINGER))
                        nursery.start_soon(self._run_deadlines)
                        core.resume_accepting()
                        task_status.started([listener.endpoint for listener in self.listeners])
                        await (trio.Event() if stopping is None else stopping).wait()
                        await self._drain()
                        nursery.cancel_scope.cancel()
            finally:
                self._end()

    def open_port(self, route: Route, backend: Backend) -> None:
        """Listen for one more route, while serve is running. Raises StartError."""
        sock = listen_tcp(route.listen, flag=LISTENING, shared=self._shared)
        listener = self._opened[route.listen] = Listener(self.core, sock, route, backend)
        self.core.add_listener(listener)

    def change_port(self, route: Route, backend: Backend) -> None:
        """Relay the further clients of a port that open_port has opened as another route says."""
        self._opened[route.listen].set_route(route, backend)

    def close_port(self, route: Route) -> None:
        """Close a port that open_port has opened. Clients in the kernel's queue are served, and connections live on."""
        listener = self._opened.pop(route.listen)
        if not self.core.paused:
            listener.accept_queue()
        self.core.remove_listener(listener)
        listener.sock.close()

    def set_aside(self, descriptors: int) -> None:
        """Adapt the limits to the descriptors that opened ports and their watches take."""
        self.core.set_aside(descriptors)

    async def _run_deadlines(self) -> None:
        while True:
            await trio.sleep(TICK)
            self.core.tick(monotonic())

    async def _drain(self) -> None:
        """Stop accepting, and let existing connections finish."""
        core = self.core
        for listener in self.listeners:
            # The kernel has completed the handshakes in its queue; closing the listener would reset those clients.
            if not core.paused:
                listener.accept_queue()
        core.draining = True
        self._close_listeners()
        if core.alive:
            log.info("draining", connections=len(core.alive))
            await core.empty.wait()

    def _close_listeners(self) -> None:
        for listener in self.listeners:
            if listener.sock.fileno() >= 0:
                self.core.poller.remove(listener.fd)
                listener.sock.close()

    def _end(self) -> None:
        alive = list(self.core.alive)
        if alive:
            log.warning("connections reset", connections=len(alive))
        self.core.stopped = True
        for item in alive:
            item.close(reset=True)
        self._close_listeners()

    def _refuse_own_listeners(self) -> None:
        for route in self.core.settings.routes:
            if self.backends[route.backend].failure is OWN_LISTENER:
                raise StartError(
                    f"{ROUTE_FLAG} {route}: {OWN_LISTENER.detail}; every connection would make another one"
                )
