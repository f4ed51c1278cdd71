"""A running pipeline, a scripted server that it asks, and concurrent queries through it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
from trio.testing import wait_all_tasks_blocked

from dnsproxy.forward.deadlines import GIVE_UP
from dnsproxy.forward.pipeline import Pipeline
from dnsproxy.forward.settings import TlsEndpoint
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward.certificates import NAME, trusting_context
from tests.kit import upstream_replies as upstream
from tests.kit.faulty_upstream import FaultyUpstream, Script, faulty_upstream, silence
from tests.kit.messages import query, scanned

ASKED = query("www.example.net")
RIGHT = upstream.right(ASKED)[2:]
"""Its reply without the ID."""


def tls(endpoint: Endpoint, name: str = NAME) -> TlsEndpoint:
    return TlsEndpoint(endpoint.host, endpoint.port, name)


class Asking:
    """A running pipeline, and queries through it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    async def ask(self, message: bytes = ASKED, *, timeout: float = GIVE_UP) -> bytes | None:
        """The reply without its ID, or None."""
        reply = None
        with trio.move_on_after(timeout):
            reply = await self.pipeline.ask(scanned(message))
        return None if reply is None else reply[2:]

    async def ask_all(self, *messages: bytes) -> list[bytes | None]:
        """The replies to concurrent queries, in the order of the queries."""
        found: list[bytes | None] = [None] * len(messages)

        async def ask(place: int) -> None:
            found[place] = await self.ask(messages[place])

        async with trio.open_nursery() as nursery:
            for place in range(len(messages)):
                nursery.start_soon(ask, place)
        return found


@asynccontextmanager
async def asking(
    endpoint: Endpoint, make_context: Callable[[], ssl.SSLContext] = trusting_context
) -> AsyncIterator[Asking]:
    pipeline = Pipeline(endpoint, make_context=make_context)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipeline.run)
        await wait_all_tasks_blocked()
        yield Asking(pipeline)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def serving(
    script: Script, secured: ssl.SSLContext | None, *, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[FaultyUpstream, Asking]]:
    """A server, and a pipeline to it that trusts it."""
    async with (
        faulty_upstream(silence, script, host=host, secured=secured) as server,
        asking(tls(server.endpoint) if secured else server.endpoint) as client,
    ):
        yield server, client


def several(number: int) -> list[bytes]:
    return [query(f"h{place}.example.net", ident=place) for place in range(number)]
