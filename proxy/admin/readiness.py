"""The readiness check: whether the backend of every route can be reached now.

The law: recent traffic replaces a probe. A probe sends the header of the proxy's own connections (LOCAL, or UNKNOWN in
version 1), so that a backend that requires the PROXY header logs no error.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable
from time import monotonic
from typing import Final

import trio

from proxy.backends.backend import Address, Backend
from proxy.backends.health import Cause, Failure, cause_of_connect, describe
from sidecar.admin.answers import Readiness

PROBE_SECONDS: Final = 2.0
FRESH_SECONDS: Final = 5.0
"""Seconds for which a successful connection replaces a probe."""
ATTEMPT_DELAY: Final = 0.25
"""Seconds until the next address is tried in parallel, as for connections."""


async def check_backends(greetings: Iterable[tuple[Backend, bytes]]) -> Readiness:
    """Ready if each backend accepted a connection within FRESH_SECONDS or accepts one now; otherwise the causes.

    Each backend comes with the header of its probe; a backend with two protocols is probed with one of them.
    """
    failures: list[tuple[str, Failure]] = []

    async def check(backend: Backend, greeting: bytes) -> None:
        failure = await probe(backend, greeting)
        if failure is not None:
            failures.append((str(backend.destination), failure))

    async with trio.open_nursery() as nursery:
        for backend, greeting in dict(greetings).items():
            nursery.start_soon(check, backend, greeting)
    return Readiness(ready=not failures, reason=describe(sorted(failures, key=lambda pair: pair[0])) or "ready")


async def probe(backend: Backend, greeting: bytes) -> Failure | None:
    """Why a backend cannot be reached, or None; the result also goes to the backend's health."""
    if backend.health.succeeded_within(FRESH_SECONDS, now=monotonic()):
        return None
    failure: Failure | None = Failure(Cause.TIMEOUT, f"no connection within {PROBE_SECONDS:g} s")
    with trio.move_on_after(PROBE_SECONDS):
        failure = await _try_all(backend, greeting)
    backend.observe(failure)
    return failure


async def _try_all(backend: Backend, greeting: bytes) -> Failure | None:
    """None as soon as one address accepts a connection; otherwise the last failure."""
    failure: Failure | None = backend.failure or backend.pending()
    async with trio.open_nursery() as nursery:

        async def attempt(address: Address, ended: trio.Event) -> None:
            nonlocal failure
            number = await _try(address, greeting)
            if number == 0:
                failure = None
                nursery.cancel_scope.cancel()
                return
            failure = Failure(cause_of_connect(number), os.strerror(number))
            ended.set()

        for address in backend.order():
            ended = trio.Event()
            nursery.start_soon(attempt, address, ended)
            with trio.move_on_after(ATTEMPT_DELAY):
                await ended.wait()
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
