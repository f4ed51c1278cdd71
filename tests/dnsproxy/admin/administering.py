"""A real admin port with the pages of a registry, for the duration of a block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import trio
from prometheus_client import CollectorRegistry

from dnsproxy.admin.pages.routes import table_routes
from dnsproxy.hostnames.registry import Registry
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint


async def _ready() -> Readiness:
    return Readiness(ready=True, reason="ready")


@asynccontextmanager
async def administered(registry: Registry, *, notes: Callable[[], Sequence[str]] = tuple) -> AsyncIterator[Endpoint]:
    """The endpoint of the pages."""
    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    endpoint = bound_endpoint(listener)
    serve = partial(
        serve_admin,
        [listener],
        readiness=_ready,
        registry=CollectorRegistry(),
        page=str,
        routes=table_routes(registry, ttl=5, notes=notes),
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield endpoint
        nursery.cancel_scope.cancel()
