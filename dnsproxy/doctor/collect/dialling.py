"""Dialling: one connection, one request or handshake after one kind of header, one outcome.

The law: each connection ends within its deadline, whatever the peer does, and every end is an Outcome. The header
declares a connection of the proxy itself (UNKNOWN in version 1, LOCAL in version 2), so that no log shows an invented
client.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import trio

from dnsproxy.doctor.collect.bounded_work import Finished, run_all
from dnsproxy.doctor.collect.dial_targets import DialTarget, header_targets
from dnsproxy.doctor.collect.http_exchange import AGENT, exchange
from dnsproxy.doctor.collect.reaction import Reaction
from dnsproxy.doctor.collect.tls_exchange import exchange_over_tls
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.paths import name_to_ask
from sidecar.sockets.socket_address import family_of, socket_address
from sidecar.values.endpoints import Endpoint
from sidecar.values.text import one_line

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 4.0
"""Seconds for a handshake, and as many for a response."""
ALL_SECONDS: Final = 60.0
"""Seconds for all connections: dead addresses must not delay the user once for each of them."""
_SHOWN: Final = 80
# The PROXY protocol, sections 2.1 and 2.2; tests compare these with what the relay sends of its own.
HEADERS: Final = {
    Header.PLAIN: b"",
    Header.V1: b"PROXY UNKNOWN\r\n",
    Header.V2: b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00",
}
# This machine lacks a route or an address of the family, or the family itself. EHOSTUNREACH, EACCES and EINVAL are of
# routes that say unreachable, prohibit and blackhole: there, an address exists for clients to try.
_NO_ROUTE: Final = frozenset([errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
_OUTCOMES: Final = {
    errno.ECONNREFUSED: Outcome.REFUSED,
    # A server that resets at once can be faster than the end of connect().
    errno.ECONNRESET: Outcome.RESET,
} | dict.fromkeys(_NO_ROUTE, Outcome.NO_ROUTE)


async def dial_with_headers(
    targets: Sequence[DialTarget], progress: Callable[[str], None], *, seconds: float = ALL_SECONDS
) -> Finished[Probe]:
    """The outcomes, then those with a header where a bare connection was opened and not answered, all in one time."""
    deadline = trio.current_time() + seconds
    first = await dial_all(targets, lambda done: progress(f"dialled {done} of {len(targets)} ports"), seconds=seconds)
    again = header_targets(first.results)
    second = await dial_all(
        again,
        lambda done: progress(f"dialled {done} of {len(again)} ports with a header"),
        seconds=max(0, deadline - trio.current_time()),
    )
    return Finished((*first.results, *second.results), first.count + second.count, seconds)


async def dial_all(
    targets: Sequence[DialTarget], on_done: Callable[[int], None] = lambda _: None, *, seconds: float = ALL_SECONDS
) -> Finished[Probe]:
    """The outcomes in the order of the targets; `on_done` is called with the number of finished connections."""
    return await run_all(dial, targets, on_done, seconds=seconds)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a connection is tried; times in seconds."""

    connect_seconds: float = CONNECT_SECONDS
    answer_seconds: float = ANSWER_SECONDS
    agent: str = AGENT
    """What logs show of a request."""
    requests_over_tls: bool = True
    """Whether a request follows a TLS handshake."""


DEFAULT: Final = Manner()


async def dial(target: DialTarget, manner: Manner = DEFAULT) -> Probe:
    """Try one connection."""
    reaction = await _react(target, manner)
    return Probe(
        target.endpoint.host,
        target.endpoint.port,
        target.hostname,
        target.tls,
        target.header,
        reaction.outcome,
        one_line(reaction.detail)[:_SHOWN],
        reaction.status,
        reaction.identity,
    )


async def _react(target: DialTarget, manner: Manner) -> Reaction:
    try:
        with trio.fail_after(manner.connect_seconds):
            connected = await _connect(target.endpoint)
    except trio.TooSlowError:
        return Reaction(Outcome.UNREACHABLE, f"no connection within {manner.connect_seconds:g} s")
    except OSError as error:
        return Reaction(_OUTCOMES.get(error.errno or 0, Outcome.UNREACHABLE), os.strerror(error.errno or 0))
    with connected:
        return await _converse(trio.SocketStream(connected), target, manner)


async def _connect(endpoint: Endpoint) -> trio.socket.SocketType:
    """A connected socket. Raises OSError, for a family that the kernel lacks too."""
    connecting = trio.socket.socket(family_of(endpoint), socket.SOCK_STREAM)
    try:
        await connecting.connect(socket_address(endpoint))
    except BaseException:
        connecting.close()
        raise
    return connecting


async def _converse(stream: trio.SocketStream, target: DialTarget, manner: Manner) -> Reaction:
    with suppress(trio.BrokenResourceError):
        await stream.send_all(HEADERS[target.header])
    name, seconds = name_to_ask(target.hostname), manner.answer_seconds
    if target.tls:
        return await exchange_over_tls(stream, name, seconds=seconds, requests=manner.requests_over_tls)
    return await exchange(stream, name, seconds=seconds, agent=manner.agent)
