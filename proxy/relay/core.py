"""What all connections of one process share: poller, deadlines, read buffer, pipes, counters and limits.

The law: connections know the core; the core knows them only as items to start, to close and to wake at a deadline. It
holds each client from its admission to its end, and decides when accepting pauses. Tested in test_relay.py and
test_limits.py.
"""

from __future__ import annotations

import time
from time import monotonic
from typing import Final, Protocol

import structlog
import trio

from proxy.relay.counters import Counters
from proxy.relay.limits import Clients, LogPace, connections_within, pipes_within, share_of_one_client
from proxy.relay.side import FAULT, contain
from proxy.relay.splice import Pipes
from proxy.settings import Settings
from proxy.tap.ended import Ending, Outcome, describe
from proxy.tap.tap import Tap
from sidecar.loop.host import make_poller
from sidecar.loop.timing_wheel import NOWHERE, Wheel
from sidecar.sockets.accepting import Shortage
from sidecar.sockets.descriptors import descriptor_limit
from sidecar.values.endpoints import Endpoint

BUFFER: Final = 65_536
"""Bytes per read, and so the most that each direction holds outside the kernel."""

Admitted = tuple[str, int, Endpoint, float]
"""Address and port of a client, the listener that accepted it, and when, in monotonic time."""

FORGED_OR_LOOP: Final = (
    "client refused, its PROXY header names another one: the backend leads back to this relay, or the client made it up"
)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Item(Protocol):
    """A client with or without its backend."""

    slot: int
    """Belongs to the timing wheel."""

    def on_due(self, now: float) -> None:
        """The scheduled deadline has come."""

    def close(self, *, reset: bool) -> None:
        """Close all its sockets, with RST if `reset`."""

    def outcome(self) -> Outcome:
        """How it has ended."""


class Startable(Item, Protocol):
    """A client that has been accepted."""

    def start(self) -> None:
        """Begin to connect to the backend."""


class Connected(Item, Protocol):
    """A client with its backend."""

    active_at: float


class Accepting(Protocol):
    """A listening socket."""

    fd: int

    def accept(self, events: int, /) -> None:
        """Accept the waiting clients."""


class Core:
    """The shared state of one process."""

    def __init__(self, settings: Settings, *, pipes: Pipes | None = None) -> None:
        self.settings = settings
        self.tap = Tap()
        self.counters = Counters()
        self.poller = make_poller()
        self.wheel: Wheel[Item] = Wheel(now=monotonic())
        self.buffer = bytearray(BUFFER)
        self.view = memoryview(self.buffer)
        # Each route of a flag has a listener.
        self._descriptors = descriptors = descriptor_limit() - len(settings.routes)
        self.pipes = Pipes(most=pipes_within(descriptors)) if pipes is None else pipes
        self.limit = _connection_limit(settings.max_connections, descriptors=descriptors)
        self.clients = Clients(most_each=settings.max_connections_per_client or share_of_one_client(self.limit))
        self.listeners: list[Accepting] = []
        self.alive: dict[Item, Admitted] = {}
        self.paused = False
        """No listener is watched."""
        self.draining = False
        self.stopped = False
        """What is closed now is closed because the relay ends."""
        self.empty = trio.Event()
        """Set when the last connection has ended while draining."""
        self._shortage = Shortage()
        self._crowd_log, self._header_log, self._loop_log = LogPace(), LogPace(), LogPace()
        self.idle_limits = settings.idle_limit(header=False), settings.idle_limit(header=True)
        """Of a connection without and with a header of the relay."""
        self._first_look = min(*self.idle_limits, settings.half_close_timeout, 5.0)

    def set_aside(self, descriptors: int) -> None:
        """Adapt the limits to the descriptors that routes from Services take now."""
        settings, left = self.settings, self._descriptors - descriptors
        possible = connections_within(left, pipes=pipes_within(self._descriptors))
        self.limit = min(possible, settings.max_connections or possible)
        self.clients.most_each = settings.max_connections_per_client or share_of_one_client(self.limit)

    def admit(self, host: str, port: int, *, route: Endpoint, limited: bool = True) -> bool:
        """Whether the client may have another connection; a refusal is logged."""
        if self.clients.enter(host, port, limited=limited):
            return True
        self.counters.refused += 1
        if self.tap.listening:
            self._show((host, port, route, monotonic()), Outcome(Ending.LIMIT))
        if self._crowd_log.is_due(now=monotonic()):
            log.warning("client refused, it has too many connections", client=host, most=self.clients.most_each)
        return False

    def note_header(self, host: str) -> None:
        """A client has begun with a PROXY header of its own, on a route without headers."""
        self._refuse_header(host, self._header_log, "client refused, it sent a PROXY header of its own")

    def note_loop(self, host: str) -> None:
        """A client has begun with the PROXY header of another connection.

        Any client can write one: it counts for no backend, or a client could have one reported as unreachable.
        """
        self._refuse_header(host, self._loop_log, FORGED_OR_LOOP)

    def _refuse_header(self, host: str, pace: LogPace, event: str) -> None:
        self.counters.headers_refused += 1
        if pace.is_due(now=monotonic()):
            log.warning(event, client=host)

    def begin(self, item: Startable, *, source: tuple[str, int], route: Endpoint) -> None:
        """Start an admitted client."""
        self.counters.connections += 1
        self.counters.active += 1
        self.alive[item] = (*source, route, monotonic())
        # The same as contain(), without the cost of its call.
        try:
            item.start()
        except Exception:
            log.exception(FAULT)
            item.close(reset=True)

    def replace(self, started: Item, connection: Connected) -> None:
        """A started client has its backend: `connection` takes its place."""
        if started.slot != NOWHERE:
            self.wheel.cancel(started)
        self.alive[connection] = self.alive.pop(started)
        # Most connections have ended before this first look; it then sets the real deadline.
        self.wheel.schedule(connection, connection.active_at + self._first_look)

    def forget(self, ended: Item) -> None:
        """An item has closed its sockets."""
        self.wheel.cancel(ended)
        admitted = self.alive.pop(ended)
        self.counters.active -= 1
        if self.draining and not self.alive:
            self.empty.set()
        self.clients.leave(admitted[0], admitted[1])
        if self.tap.listening:
            self._show(admitted, ended.outcome())

    def _show(self, admitted: Admitted, outcome: Outcome) -> None:
        host, port, route, begun = admitted
        if self.stopped:
            outcome = outcome._replace(ending=Ending.STOPPED, cause="")
        seconds = monotonic() - begun
        self.tap.note(describe(outcome, client=host, port=port, route=str(route), ended=time.time(), seconds=seconds))

    def may_accept(self) -> bool:
        """Whether there is room for another client; if not, accepting pauses."""
        if len(self.alive) >= self.limit:
            self.pause_accepting(f"{self.limit} connections are the limit")
        return not self.paused

    def pause_accepting(self, reason: str) -> None:
        """Leave new clients in the kernel's queue until the next tick; existing connections are not affected."""
        if self._shortage.begin(monotonic()):
            log.warning("not accepting for now", reason=reason, connections=len(self.alive))
        self.paused = True
        for listener in self.listeners:
            self.poller.remove(listener.fd)

    def resume_accepting(self) -> None:
        """Watch the listeners."""
        self.paused = False
        for listener in self.listeners:
            self.poller.add(listener.fd, listener.accept)

    def add_listener(self, listener: Accepting) -> None:
        """Watch one more listener, if accepting is not paused."""
        self.listeners.append(listener)
        if not self.paused:
            self.poller.add(listener.fd, listener.accept)

    def remove_listener(self, listener: Accepting) -> None:
        """No longer watch a listener; call it before its socket is closed."""
        self.listeners.remove(listener)
        self.poller.remove(listener.fd)

    def tick(self, now: float) -> None:
        """Wake the items that are due, and end a pause if there is room."""
        for item in self.wheel.due(now):
            contain(item, item.on_due, now)
        if self.paused and len(self.alive) < self.limit and not self.draining:
            self.resume_accepting()
        elif not self.paused and (lasted := self._shortage.end(now)) is not None:
            log.info("accepting again", seconds=round(lasted, 1), connections=len(self.alive))


def _connection_limit(wanted: int | None, *, descriptors: int) -> int:
    possible = connections_within(descriptors)
    if wanted is not None and wanted > possible:
        log.warning(
            "the descriptor limit allows fewer connections", asked=wanted, possible=possible, descriptors=descriptors
        )
    return possible if wanted is None else min(wanted, possible)
