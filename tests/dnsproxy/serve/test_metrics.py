"""The metrics of a server: those that operators and alerts use, and none that a client can make grow."""

from __future__ import annotations

import trio
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.replace.verdicts import LeadsTo, Verdict
from dnsproxy.serve.metrics import ServerCollector
from sidecar.admin.port import make_registry
from tests.kit import messages
from tests.kit.dns_server import Running, running
from tests.kit.faulty_upstream import faulty_upstream, refusing_upstream


def registry_of(world: Running) -> CollectorRegistry:
    keeper = TableKeeper(
        Registry(targets=Targets(), guards=Guards()), ttl=5, publish=lambda _table: None, sources=["static"]
    )
    return make_registry(ServerCollector(world.server, keeper))


async def test_a_query_is_counted_by_protocol_and_its_reply_by_source_and_rcode() -> None:
    async with faulty_upstream() as server, running(server.endpoint) as world:
        registry = registry_of(world)
        await world.ask(messages.query("app.example.org"))
        await world.ask_stream(messages.query("elsewhere.example"))
        value = registry.get_sample_value
        assert value("dnsproxy_dns_requests_total", {"proto": "udp"}) == 1
        assert value("dnsproxy_dns_requests_total", {"proto": "tcp"}) == 1
        assert value("dnsproxy_dns_responses_total", {"rcode": "NOERROR", "source": "table"}) == 1
        assert value("dnsproxy_dns_responses_total", {"rcode": "NOERROR", "source": "upstream"}) == 1


async def test_an_upstream_that_does_not_answer_shows_as_unhealthy() -> None:
    with refusing_upstream() as refusing:
        async with faulty_upstream() as server, running(refusing, server.endpoint) as world:
            registry = registry_of(world)
            while not world.forwarder.upstreams.used[0].health.failing:
                await world.ask(messages.query("elsewhere.example"))
                await trio.lowlevel.checkpoint()
            name = "dnsproxy_forward_upstream_healthy"
            assert registry.get_sample_value(name, {"upstream": str(refusing)}) == 0
            assert registry.get_sample_value(name, {"upstream": str(server.endpoint)}) == 1


async def test_the_reasons_why_upstreams_are_not_followed_are_counted() -> None:
    async with running() as world:
        keeper = TableKeeper(
            Registry(targets=Targets(), guards=Guards()), ttl=5, publish=lambda _table: None, sources=[]
        )
        notes: list[str] = []
        registry = make_registry(ServerCollector(world.server, keeper, upstream_notes=lambda: notes))
        assert registry.get_sample_value("dnsproxy_forward_upstreams_not_followed") == 0
        notes += ["one", "two"]
        assert registry.get_sample_value("dnsproxy_forward_upstreams_not_followed") == 2


async def test_a_name_whose_target_has_no_address_is_counted() -> None:
    async with faulty_upstream() as server, running(server.endpoint) as world:
        claims = Registry(targets=Targets(), guards=Guards())
        keeper = TableKeeper(claims, ttl=5, publish=lambda _table: None, sources=[])
        claims.replace("Ingress", "app", [Claim("app.example.org", Reach.NAME, Origin("Ingress", "app"))])
        await keeper.swap()
        registry = make_registry(ServerCollector(world.server, keeper))
        assert registry.get_sample_value("dnsproxy_table_names_without_address") == 1
        assert registry.get_sample_value("dnsproxy_table_names") == 0


async def test_a_name_that_another_namespace_waits_for_is_counted() -> None:
    async with faulty_upstream() as server, running(server.endpoint) as world:
        claims = Registry(targets=Targets(("192.0.2.1",)), guards=Guards(), holds=Holds(600))
        keeper = TableKeeper(claims, ttl=5, publish=lambda _table: None, sources=[])
        registry = make_registry(ServerCollector(world.server, keeper))
        for namespace in ("shop", "thief"):
            origin = Origin("Ingress", "app", namespace)
            claims.replace("Ingress", namespace, [Claim("app.example.org", Reach.NAME, origin)])
        await keeper.swap()
        assert registry.get_sample_value("dnsproxy_table_names_contested") == 0
        claims.replace("Ingress", "shop", [])
        await keeper.swap()
        assert registry.get_sample_value("dnsproxy_table_names_contested") == 1


async def test_names_over_the_share_of_their_namespace_are_counted() -> None:
    async with faulty_upstream() as server, running(server.endpoint) as world:
        claims = Registry(targets=Targets(("192.0.2.1",)), guards=Guards(), limits=NameLimits(per_namespace=1))
        keeper = TableKeeper(claims, ttl=5, publish=lambda _table: None, sources=[])
        registry = make_registry(ServerCollector(world.server, keeper))
        for number in range(3):
            origin = Origin("Ingress", f"app{number}", "shop")
            claim = Claim(f"app{number}.example.org", Reach.NAME, origin)
            claims.shares.replace("Ingress", f"shop/app{number}", [claim])
        assert list(claims.shares.settle()) == []
        assert registry.get_sample_value("dnsproxy_names_left_out") == 2


async def test_claimed_names_that_were_asked_are_counted_by_where_they_lead_and_replaced_replies_too() -> None:
    async with faulty_upstream() as server, running(server.endpoint) as world:
        registry = registry_of(world)
        verdicts = world.forwarder.verification.verdicts
        until = trio.current_time() + 60
        for number, place in enumerate([LeadsTo.HERE, LeadsTo.HERE, LeadsTo.ELSEWHERE]):
            verdicts.note(bytes([number]), messages.A, Verdict(place, until), below=False)
        world.server.counters.forward_replaced += 7
        name = "dnsproxy_claimed_names_asked"
        found = {place: registry.get_sample_value(name, {"leads": place.value}) for place in LeadsTo}
        assert found == {LeadsTo.HERE: 2, LeadsTo.NOWHERE: 0, LeadsTo.ELSEWHERE: 1}
        assert registry.get_sample_value("dnsproxy_forward_replaced_total") == 7


async def test_no_name_that_is_asked_for_becomes_a_label() -> None:
    async with faulty_upstream() as server, running(server.endpoint) as world:
        registry = registry_of(world)
        await world.ask(messages.query('evil"\\n.example'))
        await world.ask(messages.query("app.example.org"))
        text = generate_latest(registry).decode()
        assert "evil" not in text
        assert "app.example.org" not in text
