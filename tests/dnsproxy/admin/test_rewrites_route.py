"""The route `/rewrites` over an admin port: a table that changes, and a whole server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import trio
from prometheus_client import CollectorRegistry

from dnsproxy.admin.rewrites_document import PATH, Name, RewritesDocument, parse_rewrites_document
from dnsproxy.admin.rewrites_route import RewritesRoute
from dnsproxy.answers.table import HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from sidecar.admin.asking import Reply, get
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint
from tests.kit.serve_inside import serving, settings

RELAY = "switchback/relay"
Ask = Callable[[str], Awaitable[Reply]]
"""With an entity tag, or none."""


class Server:
    """A table whose names all lead to one Service, with objects of different ages."""

    def __init__(self) -> None:
        self.registry = Registry(targets=Targets((f"service:{RELAY}",)), guards=Guards())
        self.registry.set_services({RELAY: ("192.0.2.1",)})
        self.writer = TableWriter(ttl=5)
        self.waiting_for: tuple[str, ...] = ()

    def claim(self, hostname: str, created: str) -> None:
        origin = Origin("Ingress", hostname, "default", created)
        self.registry.replace("Ingress", hostname, [Claim(hostname, Reach.NAME, origin)])
        for host in self.registry.changes():
            self.writer.put(host)

    def table(self) -> HostTable:
        return self.writer.publish()


@asynccontextmanager
async def showing(server: Server) -> AsyncIterator[Ask]:
    async def ready() -> Readiness:
        return Readiness(ready=True, reason="")

    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    route = RewritesRoute(server.table, server.registry, waiting_for=lambda: server.waiting_for)
    serve = partial(
        serve_admin, [listener], readiness=ready, registry=CollectorRegistry(), page=str, routes=route.routes()
    )
    endpoint = Endpoint("127.0.0.1", bound_endpoint(listener).port)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield partial(read, endpoint)
        nursery.cancel_scope.cancel()


async def read(admin: Endpoint | None, tag: str = "") -> Reply:
    assert admin is not None
    return await get(admin, PATH, program="dnsproxy serve", headers={"If-None-Match": tag} if tag else {})


async def names_of(ask: Ask) -> list[str]:
    reply = await ask("")
    return [name.hostname for name in parse_rewrites_document(reply.body).names]


async def test_the_names_of_the_oldest_objects_come_first_and_are_not_sent_again() -> None:
    server = Server()
    server.claim("a.example.org", "2026-03-01T00:00:00Z")
    server.claim("b.example.org", "2026-01-01T00:00:00Z")
    async with showing(server) as ask:
        first = await ask("")
        names = (Name("b.example.org", Reach.NAME, RELAY), Name("a.example.org", Reach.NAME, RELAY))
        assert parse_rewrites_document(first.body) == RewritesDocument(names=names)
        again = await ask(first.tag)
        assert (again.modified, again.body) == (False, b"")


async def test_a_new_name_and_one_without_a_ready_endpoint_change_the_document() -> None:
    server = Server()
    server.claim("a.example.org", "2026-03-01T00:00:00Z")
    async with showing(server) as ask:
        assert await names_of(ask) == ["a.example.org"]
        server.claim("b.example.org", "2026-04-01T00:00:00Z")
        while await names_of(ask) != ["a.example.org", "b.example.org"]:
            await trio.lowlevel.checkpoint()
        server.writer.forward(frozenset([RELAY]))
        while await names_of(ask):
            await trio.lowlevel.checkpoint()
        server.writer.forward(frozenset())
        while await names_of(ask) != ["a.example.org", "b.example.org"]:
            await trio.lowlevel.checkpoint()


async def test_a_server_that_waits_for_its_sources_says_so() -> None:
    server = Server()
    server.claim("a.example.org", "2026-03-01T00:00:00Z")
    server.waiting_for = ("Ingress",)
    async with showing(server) as ask:
        reply = await ask("")
        assert parse_rewrites_document(reply.body).waiting_for == ("Ingress",)
        server.waiting_for = ()
        later = await ask(reply.tag)
        assert parse_rewrites_document(later.body).waiting_for == ()


async def test_a_complete_document_is_never_one_of_a_moment_before_it_was_complete() -> None:
    server = Server()
    server.waiting_for = ("Ingress",)
    async with showing(server) as ask:
        assert await names_of(ask) == []
        server.claim("a.example.org", "2026-03-01T00:00:00Z")
        server.waiting_for = ()
        assert await names_of(ask) == ["a.example.org"]


async def test_a_whole_server_counts_names_with_plain_addresses() -> None:
    async with serving(settings()) as bound:
        document = parse_rewrites_document((await read(bound.admin)).body)
    assert document == RewritesDocument(names=(), plain=1)
