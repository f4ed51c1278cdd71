"""The readiness check: whether the backend of every route can be reached now.

The law: what traffic has shown is not asked again, and a probe introduces itself as the proxy's own connection, so that
a backend that demands the PROXY header has nothing to complain about in its log.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable
from time import monotonic
from typing import Final

import trio

from proxy.backend import Address, Backend
from proxy.header import LOCAL, ProxyProtocol, format_v1, format_v2
from proxy.readiness import Cause, Failure, cause_of_connect, describe
from sidecar.answers import Readiness

PROBE_SECONDS: Final = 2.0
FRESH_SECONDS: Final = 5.0
"""How long a connection that worked stands for a probe."""

_GREETINGS: Final = {
    ProxyProtocol.V1: format_v1(LOCAL),
    ProxyProtocol.V2: format_v2(LOCAL),
    ProxyProtocol.NONE: b"",
}


async def check_backends(backends: Iterable[Backend], *, protocol: ProxyProtocol) -> Readiness:
    """Ready if each backend took a connection in the last seconds or takes one now; else the causes."""
    failures: list[tuple[str, Failure]] = []

    async def check(backend: Backend) -> None:
        failure = await probe(backend, protocol=protocol)
        if failure is not None:
            failures.append((str(backend.destination), failure))

    async with trio.open_nursery() as nursery:
        for backend in backends:
            nursery.start_soon(check, backend)
    return Readiness(ready=not failures, reason=describe(sorted(failures, key=lambda pair: pair[0])) or "ready")


async def probe(backend: Backend, *, protocol: ProxyProtocol) -> Failure | None:
    """Why a backend cannot be reached, or None; the backend's health takes it in."""
    if backend.health.succeeded_within(FRESH_SECONDS, now=monotonic()):
        return None
    failure: Failure | None = Failure(Cause.TIMEOUT, f"no connection within {PROBE_SECONDS:g} s")
    with trio.move_on_after(PROBE_SECONDS):
        failure = await _try_all(backend, _GREETINGS[protocol])
    backend.observe(failure)
    return failure


async def _try_all(backend: Backend, greeting: bytes) -> Failure | None:
    failure = backend.failure or Failure(Cause.DNS_TIMEOUT, "the name is not resolved yet")
    for address in backend.addresses:
        number = await _try(address, greeting)
        if number == 0:
            return None
        failure = Failure(cause_of_connect(number), os.strerror(number))
    return failure


async def _try(address: Address, greeting: bytes) -> int:
    """The errno of a connect, 0 for success."""
    try:
        with trio.socket.socket(address.family, socket.SOCK_STREAM) as sock:
            await sock.connect(address.target)
            if greeting:
                await sock.send(greeting)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
