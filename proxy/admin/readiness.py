"""The readiness check: whether the backends of the routes can be reached now.

The law: route_readiness.py decides. Recent traffic replaces a probe. A probe sends the header of the proxy's own
connections (LOCAL, or UNKNOWN in version 1), so that a backend that requires the PROXY header logs no error.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import structlog
import trio

from proxy.admin.route_readiness import RouteState, judge_routes
from proxy.backends.backend import Address, Backend
from proxy.backends.balancing import MOST
from proxy.backends.health import Cause, Failure, cause_of_connect
from proxy.routes import ReadyWhen
from sidecar.admin.answers import Readiness
from sidecar.values.endpoints import Endpoint

PROBE_SECONDS: Final = 2.0
FRESH_SECONDS: Final = 5.0
"""Seconds for which a successful connection replaces a probe."""
ATTEMPT_DELAY: Final = 0.25
"""Seconds until the next address is tried in parallel, as for connections."""
AT_ONCE: Final = 16
"""Backends that are probed at the same time: a relay may have a thousand, and needs its descriptors for clients."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RouteProbe:
    """A route, and the header that a probe of its backend sends."""

    listen: Endpoint
    backend: Backend
    greeting: bytes
    exceptions: Mapping[str, bytes] = field(default_factory=dict)
    """The headers for single addresses of the backend."""
    problem: str = ""
    """As in RouteState."""


async def check_routes(
    probes: Iterable[RouteProbe], ready_when: ReadyWhen, *, closed: Iterable[RouteState] = ()
) -> Readiness:
    """A backend works if it accepted a connection within FRESH_SECONDS or accepts one now.

    A backend of several routes is probed once, with the header of one of them. `closed` are routes whose ports are not
    open. Probes begin for PROBE_SECONDS, so the check takes at most twice that. If there are so many backends that not
    each has its turn, the others are judged by their last results.
    """
    probes = list(probes)
    by_backend = {one.backend: one for one in probes}
    failures = {backend: known_failure(backend) for backend in by_backend}
    # Those that have failed come last: each may take PROBE_SECONDS from the others.
    waiting = deque(sorted(by_backend.values(), key=lambda one: failures[one.backend] is not None))

    # No deadline for all: where the process stands still, it passes together with theirs, and their results are lost.
    last_start = trio.current_time() + PROBE_SECONDS

    async def check() -> None:
        while waiting and trio.current_time() < last_start:
            one = waiting.popleft()
            failures[one.backend] = await probe(one)

    async with trio.open_nursery() as nursery:
        for _ in range(min(AT_ONCE, len(waiting))):
            nursery.start_soon(check)
    states = [
        RouteState(one.listen, str(one.backend.destination), failures[one.backend], one.problem) for one in probes
    ]
    return judge_routes([*states, *closed], ready_when)


def known_failure(backend: Backend) -> Failure | None:
    """Why a backend could not be reached, by the last connections and probes."""
    return backend.health.failure or backend.failure or (None if backend.addresses else backend.pending())


class SharedCheck:
    """One check at a time: requests that arrive while it runs get its result.

    A check connects to each address of every backend. Without this, a flood of requests would take the descriptors of
    the clients while a backend does not answer.
    """

    def __init__(self, check: Callable[[], Awaitable[Readiness]]) -> None:
        self._check = check
        self._running: _Running | None = None

    async def result(self) -> Readiness:
        """The result of the check that runs, or of a new one."""
        while (running := self._running) is not None:
            await running.ended.wait()
            if running.readiness is not None:
                return running.readiness
            # The request that ran the check has gone.
        running = self._running = _Running()
        try:
            running.readiness = await self._check()
        finally:
            self._running = None
            running.ended.set()
        return running.readiness


class _Running:
    """A check that runs."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.readiness: Readiness | None = None
        """Stays None if the check was cancelled."""


class ReadinessLog:
    """Logs when the relay becomes ready, and when it no longer is."""

    def __init__(self) -> None:
        self._ready = False

    def note(self, readiness: Readiness) -> None:
        """Log a change; that a relay is not ready at its start is none."""
        if readiness.ready != self._ready:
            self._ready = readiness.ready
            if readiness.ready:
                log.info("ready", reason=readiness.reason)
            else:
                log.warning("not ready", reason=readiness.reason)


async def probe(one: RouteProbe) -> Failure | None:
    """Why the backend cannot be reached, or None; the result also goes to its health."""
    backend = one.backend
    if backend.health.succeeded_within(FRESH_SECONDS, now=monotonic()):
        return None
    failure: Failure | None = Failure(Cause.TIMEOUT, f"no connection within {PROBE_SECONDS:g} s")
    with trio.move_on_after(PROBE_SECONDS):
        failure = await _try_all(one)
    backend.observe(failure)
    return failure


async def _try_all(one: RouteProbe) -> Failure | None:
    """None as soon as one address accepts a connection; otherwise the last failure."""
    backend = one.backend
    failure: Failure | None = backend.failure or backend.pending()
    async with trio.open_nursery() as nursery:

        async def attempt(address: Address, ended: trio.Event) -> None:
            nonlocal failure
            number = await _try(address, one.exceptions.get(address.host, one.greeting))
            if number == 0:
                failure = None
                nursery.cancel_scope.cancel()
                return
            failure = Failure(cause_of_connect(number), os.strerror(number))
            ended.set()

        silent = 0
        for address in backend.order():
            ended = trio.Event()
            nursery.start_soon(attempt, address, ended)
            with trio.move_on_after(ATTEMPT_DELAY):
                await ended.wait()
            silent += not ended.is_set()
            if silent == MOST:
                break
    return failure


async def _try(address: Address, greeting: bytes) -> int:
    """The errno of connect, or 0."""
    try:
        with trio.socket.socket(address.family, socket.SOCK_STREAM) as sock:
            await sock.connect(address.sockaddr)
            if greeting:
                await sock.send(greeting)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
