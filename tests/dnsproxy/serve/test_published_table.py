"""The published table: what readers may copy, found out with a public DNS, and at its pace on a clock that jumps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial, wraps

import pytest
import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock

from dnsproxy.admin.publication import Publication, names_of
from dnsproxy.admin.publication_route import PublicationRoute
from dnsproxy.admin.rewritable_names import find_rewritable
from dnsproxy.answers.answer_records import Answers, Claimed
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Type
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.publish.source import ServerSource, SourceError
from dnsproxy.replace import verdicts
from dnsproxy.replace.balancers import Balancers
from dnsproxy.replace.verdicts import LeadsTo, Verdict
from dnsproxy.serve.published_rows import BURST, EACH_SECOND, SILENCE
from dnsproxy.serve.published_table import AWAKE, KEPT, PublishedTable
from dnsproxy.server.dns_server import DnsServer
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort
from tests.kit.dns_server import Running, running
from tests.kit.faulty_upstream import FaultyUpstream, Pause, faulty_upstream, silence
from tests.kit.messages import wire_name
from tests.kit.public_dns import PublicDns
from tests.kit.publications import publication

BALANCER = "203.0.113.10"
BALANCER_6 = "2001:db8:a::10"
RELAY = "10.96.7.7"
RELAY_6 = "fd00::7"
ELSEWHERE = "198.51.100.7"
SERVICE = "switchback/relay"
LINES = (
    f"app.example.org 60 A {BALANCER}",
    f"www.example.org 60 A {ELSEWHERE}",
    "six.example.org 60 AAAA 2001:db8:e::1",
    f"both.example.org 60 A {BALANCER}",
    "both.example.org 60 AAAA 2001:db8:e::1",
    f"dual.example.org 60 A {BALANCER}",
    f"dual.example.org 60 AAAA {BALANCER_6}",
)


class Rows:
    """Tables whose rows a test changes."""

    def __init__(self, *names: str, claimed: Claimed = Claimed.VERIFIED, relay: tuple[str, ...] = (RELAY,)) -> None:
        self.writer = TableWriter(ttl=5)
        self.writer.lead(Balancers({}, {BALANCER: (), BALANCER_6: ()}))
        self.relay = relay
        self.put(*names, claimed=claimed)

    def put(self, *names: str, claimed: Claimed = Claimed.VERIFIED) -> None:
        for name in names:
            reach = Reach.ANY_LABELS if name.startswith("*.") else Reach.NAME
            self.writer.put(Host(name, reach, self.relay, service=SERVICE, claimed=claimed))

    def remove(self, name: str) -> None:
        self.writer.put(Host(name, Reach.NAME, ()))

    def table(self) -> HostTable:
        return self.writer.publish()


def shown(published: PublishedTable) -> set[str]:
    return {name.hostname for name in names_of(published.table)}


async def read(published: PublishedTable) -> set[str]:
    """What a reader gets."""
    await published.read()
    return shown(published)


async def until_shown(published: PublishedTable, *names: str) -> None:
    """Read as a publisher does; the test's deadline bounds it."""
    while await read(published) != set(names):  # noqa: ASYNC110  # each round is a request
        await trio.sleep(0.02)


# --- With a server and a public DNS ---


class World:
    """A server with these rows, its public DNS, and what it publishes."""

    def __init__(self, rows: Rows, server: Running, there: FaultyUpstream) -> None:
        self.rows = rows
        self.server = server
        self.there = there
        self.waiting_for: tuple[str, ...] = ()
        source = server.server
        self.published = PublishedTable(lambda: source.table, source.look, waiting_for=lambda: self.waiting_for)

    @property
    def asked(self) -> int:
        return len(self.there.asked_datagrams) + len(self.there.asked_streams)

    def swap(self) -> None:
        self.server.server.table = self.rows.table()


@asynccontextmanager
async def world_of(rows: Rows, *lines: str) -> AsyncIterator[World]:
    public = PublicDns(*(lines or LINES))
    async with faulty_upstream(public, public) as there, running(there.endpoint, table=rows.table()) as server:
        world = World(rows, server, there)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.published.run)
            yield world
            nursery.cancel_scope.cancel()


async def test_a_name_that_leads_here_or_nowhere_is_published_and_one_that_leads_elsewhere_is_not() -> None:
    async with world_of(Rows("app.example.org", "new.example.org", "www.example.org", "six.example.org")) as world:
        assert await read(world.published) == {"app.example.org", "new.example.org"}
        assert world.published.waiting_for() == ()


async def test_an_enforced_name_is_published_only_where_it_leads_here() -> None:
    rows = Rows("app.example.org", "new.example.org", "www.example.org", claimed=Claimed.ENFORCED)
    async with world_of(rows) as world:
        assert await read(world.published) == {"app.example.org"}
        assert world.published.waiting_for() == ()


async def test_a_claimed_wildcard_is_not_published_and_nobody_is_asked_for_it() -> None:
    async with world_of(Rows("*.example.org")) as world:
        assert await read(world.published) == set()
        assert (world.published.waiting_for(), world.asked) == ((), 0)


@pytest.mark.parametrize("claimed", [Claimed.NO, Claimed.REPORTED])
async def test_rows_in_which_public_dns_has_no_say_are_published_as_they_are_and_ask_nobody(claimed: Claimed) -> None:
    rows = Rows("www.example.org", "*.example.org", claimed=claimed)
    async with world_of(rows) as world:
        assert await read(world.published) == {"www.example.org", "*.example.org"}
        assert (world.published.table, world.asked) == (rows.table(), 0)


async def test_a_row_of_both_families_is_published_only_if_neither_leads_elsewhere() -> None:
    rows = Rows("both.example.org", "dual.example.org", "app.example.org", relay=(RELAY, RELAY_6))
    async with world_of(rows) as world:
        assert await read(world.published) == {"dual.example.org", "app.example.org"}


async def test_a_row_of_ipv6_alone_is_judged_by_that_family() -> None:
    async with world_of(Rows("both.example.org", "dual.example.org", relay=(RELAY_6,))) as world:
        assert await read(world.published) == {"dual.example.org"}


async def test_without_changes_the_very_same_table_is_published() -> None:
    async with world_of(Rows("app.example.org", "www.example.org")) as world:
        await read(world.published)
        first, asked = world.published.table, world.asked
        for _ in range(3):
            await world.published.read()
        assert world.published.table is first
        assert world.asked == asked


async def test_what_is_known_from_a_clients_query_is_not_asked_again() -> None:
    async with world_of(Rows("app.example.org")) as world:
        verification = world.server.forwarder.verification
        claim = world.rows.table().exact[wire_name("app.example.org")]
        await verification.look(wire_name("app.example.org"), claim)
        asked = world.asked
        assert await read(world.published) == {"app.example.org"}
        assert world.asked == asked


async def test_names_of_the_publication_push_out_no_verdict_on_a_name_that_clients_ask_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = verdicts.COST + len(verdicts.key_of(wire_name("asked0.example.org"), Type.A))
    monkeypatch.setattr(verdicts, "EXACT", 3 * room)
    names = [f"h{number}.example.org" for number in range(20)]
    async with world_of(Rows(*names)) as world:
        kept = world.server.forwarder.verification.verdicts
        for number in range(3):
            verdict = Verdict(LeadsTo.HERE, trio.current_time() + 60)
            kept.note(wire_name(f"asked{number}.example.org"), Type.A, verdict, below=False)
        assert await read(world.published) == set(names)
        assert all(
            kept.find_fresh(wire_name(f"asked{number}.example.org"), Type.A, trio.current_time()) for number in range(3)
        )


async def test_without_an_upstream_every_name_is_published_at_once() -> None:
    rows = Rows("app.example.org", "www.example.org")
    async with running(table=rows.table()) as server, trio.open_nursery() as nursery:
        published = PublishedTable(lambda: server.server.table, server.server.look, waiting_for=tuple)
        nursery.start_soon(published.run)
        assert await read(published) == {"app.example.org", "www.example.org"}
        assert published.waiting_for() == ()
        nursery.cancel_scope.cancel()


async def test_a_server_without_sockets_asks_too_when_it_runs() -> None:
    """As that of the parent of several workers."""
    public = PublicDns(*LINES)
    async with faulty_upstream(public, public) as there, trio.open_nursery() as nursery:
        server = DnsServer(forwarding=ForwardSettings((there.endpoint,)))
        server.table = Rows("app.example.org", "www.example.org").table()
        published = PublishedTable(lambda: server.table, server.look, waiting_for=tuple)
        nursery.start_soon(published.run)
        assert await read(published) == set()
        assert published.waiting_for() == ("public DNS (0 % of 2 claimed names)",)
        nursery.start_soon(server.run, (), ())
        await until_shown(published, "app.example.org")
        assert published.waiting_for() == ()
        nursery.cancel_scope.cancel()


async def test_a_new_name_comes_after_it_was_asked_and_the_others_do_not_wait_for_it() -> None:
    async with world_of(Rows("app.example.org")) as world:
        await until_shown(world.published, "app.example.org")
        world.there.datagrams = world.there.streams = silence
        world.rows.put("new.example.org")
        world.swap()
        assert await read(world.published) == {"app.example.org"}
        assert world.published.waiting_for() == ()


async def test_another_load_balancer_counts_at_once() -> None:
    async with world_of(Rows("app.example.org", "www.example.org")) as world:
        await until_shown(world.published, "app.example.org")
        world.rows.writer.lead(Balancers({}, {ELSEWHERE: ()}))
        world.swap()
        await until_shown(world.published, "www.example.org")


async def test_a_table_that_waits_for_a_source_is_not_complete_when_its_names_are_known() -> None:
    rows = Rows("app.example.org")
    async with world_of(rows) as world:
        world.waiting_for = ("Ingress",)
        await world.published.read()
        assert world.published.waiting_for() == ("Ingress",)
        rows.put(*(f"h{number}.example.org" for number in range(50)))
        world.swap()
        world.waiting_for = ()
        await world.published.read()
        complete = world.published.waiting_for() == ()
        assert len(shown(world.published)) == 51 or not complete


async def test_a_publisher_gets_nothing_of_a_new_server_until_every_name_was_asked() -> None:
    async with world_of(Rows("app.example.org", "www.example.org")) as world, published_at(world) as source:
        public = PublicDns(*LINES)
        world.there.datagrams = world.there.streams = lambda asked: [Pause(1.2), *public(asked)]
        with pytest.raises(SourceError, match=r"waiting for the first sync of: public DNS \(0 % of 2 claimed names\)"):
            await source.read()
        first = await until_read(source)
        assert first == publication(f"app.example.org {RELAY}")
        assert await source.read() is first


@asynccontextmanager
async def published_at(world: World) -> AsyncIterator[ServerSource]:
    async def ready() -> Readiness:
        return Readiness(ready=True, reason="")

    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    route = PublicationRoute(lambda: world.published.table, ttl=lambda: 5)
    routes = world.published.routes(route.routes(waiting_for=world.published.waiting_for))
    serve = partial(serve_admin, [listener], readiness=ready, registry=CollectorRegistry(), page=str, routes=routes)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield ServerSource(HostPort("127.0.0.1", bound_endpoint(listener).port))
        nursery.cancel_scope.cancel()


async def until_read(source: ServerSource) -> Publication:
    while True:
        try:
            return await source.read()
        except SourceError:
            await trio.sleep(0.02)


# --- Rewrite lines ---


async def test_hidden_rows_below_a_wildcard_of_the_owner_are_exempt_from_its_rewrite_line() -> None:
    rows = Rows("app.example.org", "www.example.org", "*.apps.example.org")
    rows.put("*.example.org", claimed=Claimed.NO)
    async with world_of(rows) as world:
        await world.published.read()
        steps = find_rewritable(world.published.table, lambda *_: "")
        try:
            while True:
                next(steps)
        except StopIteration as done:
            found = done.value
    assert {row[1] for row in found.rows} == {"app.example.org", "*.example.org"}
    assert found.exempt == [("*.apps.example.org", Reach.ANY_LABELS), ("www.example.org", Reach.NAME)]
    assert (found.plain, found.left_out) == (0, 0)


# --- On a clock that jumps ---


def jumping(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test of many minutes, on a clock of its own."""

    @wraps(test)
    def run(**arguments: object) -> None:
        trio.run(partial(test, **arguments), clock=MockClock(autojump_threshold=0))

    return run


class Asking:
    """Where names lead, as a test sets it, and when each was asked about."""

    def __init__(self, rows: Rows, *, places: dict[str, LeadsTo] | None = None, seconds: float = 0.01) -> None:
        self.rows = rows
        self.places = places or {}
        self.is_silent = False
        self.seconds = seconds
        self.ttl = 60.0
        self.begun: list[float] = []
        self.at_once = self.most_at_once = 0
        self.published = PublishedTable(rows.table, self.look, waiting_for=tuple)

    async def look(self, name: bytes, claim: Answers) -> Verdict:
        assert claim.claimed is Claimed.VERIFIED
        self.begun.append(trio.current_time())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await trio.sleep(self.seconds)
        self.at_once -= 1
        if self.is_silent:
            return Verdict(LeadsTo.NOWHERE, trio.current_time() + 5, sure=False)
        places = {wire_name(text): place for text, place in self.places.items()}
        return Verdict(places.get(name, LeadsTo.HERE), trio.current_time() + self.ttl)

    async def read_for(self, seconds: float, *, every: float = 10.0) -> set[str]:
        """Read now and then; what the last reader gets."""
        end = trio.current_time() + seconds
        while trio.current_time() < end:
            await self.published.read()
            await trio.sleep(every)
        return await read(self.published)


@asynccontextmanager
async def asking(names: Iterable[str], **options: float) -> AsyncIterator[Asking]:
    one = Asking(Rows(*names), **options)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.published.run)
        yield one
        nursery.cancel_scope.cancel()


@jumping
async def test_a_server_that_nobody_reads_asks_nobody() -> None:
    async with asking(["app.example.org"]) as one:
        await trio.sleep(1000)
        assert one.begun == []
        assert await read(one.published) == {"app.example.org"}
        last = trio.current_time() + AWAKE
        await trio.sleep(1000)
        assert 1 < len(one.begun) <= 4
        assert max(one.begun) <= last


@jumping
async def test_names_are_asked_about_again_when_their_time_is_over() -> None:
    async with asking(["app.example.org", "b.example.org"]) as one:
        assert await one.read_for(250) == {"app.example.org", "b.example.org"}
        assert len(one.begun) == 2 * 5
        one.places["app.example.org"] = LeadsTo.ELSEWHERE
        assert await one.read_for(80) == {"b.example.org"}
        one.places.clear()
        assert await one.read_for(80) == {"app.example.org", "b.example.org"}
        assert one.published.waiting_for() == ()


@jumping
async def test_a_public_dns_that_is_silent_changes_nothing() -> None:
    async with asking(["app.example.org", "www.example.org"]) as one:
        one.places["www.example.org"] = LeadsTo.ELSEWHERE
        assert await one.read_for(30) == {"app.example.org"}
        one.is_silent = True
        assert await one.read_for(2000) == {"app.example.org"}
        assert one.published.waiting_for() == ()


@jumping
async def test_where_public_dns_is_silent_from_the_start_the_second_silence_decides() -> None:
    async with asking(["app.example.org"]) as one:
        one.is_silent = True
        assert await one.read_for(SILENCE / 2) == set()
        assert one.published.waiting_for() == ("public DNS (0 % of 1 claimed names)",)
        assert await one.read_for(10) == {"app.example.org"}
        assert one.published.waiting_for() == ()
        assert len(one.begun) < 6


@jumping
async def test_a_reader_after_a_long_time_waits_for_new_verdicts_and_one_after_a_short_time_does_not() -> None:
    async with asking(["app.example.org"]) as one:
        assert await read(one.published) == {"app.example.org"}
        one.is_silent = True
        await trio.sleep(KEPT - 10)
        assert await read(one.published) == {"app.example.org"}
        await trio.sleep(KEPT + 10)
        assert one.published.waiting_for() != ()
        assert await read(one.published) == set()
        assert one.published.waiting_for() != ()


@jumping
async def test_few_names_are_asked_at_once_and_many_at_the_pace() -> None:
    names = [f"h{number}.example.org" for number in range(BURST + 1000)]
    async with asking(names) as one:
        one.ttl = 10_000
        begun = trio.current_time()
        await one.published.read()
        assert 500 <= len(shown(one.published)) < 600
        assert one.published.waiting_for()[0].startswith("public DNS (3")
        await one.read_for(60)
        assert one.published.waiting_for() == ()
        assert len(shown(one.published)) == len(one.begun) == len(names)
        assert one.most_at_once == 8
        took = max(one.begun) - begun
        assert 1000 / EACH_SECOND - 1 <= took <= 1000 / EACH_SECOND + 2


@jumping
async def test_a_look_that_fails_is_logged_and_stops_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    async with asking(["app.example.org", "b.example.org"]) as one:
        right = one.look

        async def look(name: bytes, claim: Answers) -> Verdict:
            if name == wire_name("b.example.org"):
                raise RuntimeError("a bug")
            return await right(name, claim)

        one.published._look = look
        assert await one.read_for(10) == {"app.example.org"}
    assert "a look for the publication failed" in capsys.readouterr().out


@jumping
async def test_a_name_that_leaves_the_table_is_asked_about_no_more() -> None:
    async with asking(["app.example.org", "b.example.org"]) as one:
        await one.read_for(10)
        one.rows.remove("b.example.org")
        assert await one.read_for(100) == {"app.example.org"}
        begun = len(one.begun)
        one.rows.put("b.example.org")
        assert await one.read_for(10) == {"app.example.org", "b.example.org"}
        assert len(one.begun) <= begun + 2
        assert one.published.waiting_for() == ()
