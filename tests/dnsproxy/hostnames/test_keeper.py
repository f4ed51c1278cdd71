"""The keeper: changes become swaps, and every source is waited for."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.answers.table import HostTable
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames import ownership
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets


class Published:
    """The tables that a keeper has published."""

    def __init__(self) -> None:
        self.tables: list[HostTable] = []
        self.more = trio.Event()

    def __call__(self, table: HostTable) -> None:
        self.tables.append(table)
        self.more.set()
        self.more = trio.Event()

    async def until(self, size: int) -> HostTable:
        while not self.tables or len(self.tables[-1]) != size:
            await self.more.wait()
        return self.tables[-1]


def keeper_of(published: Published, *sources: str) -> TableKeeper:
    registry = Registry(targets=Targets(default=("192.0.2.10",)), guards=Guards())
    return TableKeeper(registry, ttl=5, publish=published, sources=sources)


def claim(hostname: str) -> Claim:
    return Claim(hostname, Reach.NAME, Origin("Ingress", "web", "default", "2026-01-01T00:00:00Z"))


async def test_a_change_becomes_a_new_table_and_the_old_one_stays_as_it_was(nursery: trio.Nursery) -> None:
    published = Published()
    keeper = keeper_of(published, "Ingress")
    nursery.start_soon(keeper.run)
    keeper.registry.replace("Ingress", "default/web", [claim("app.example.org")])
    keeper.wake()
    first = await published.until(1)
    keeper.registry.replace("Ingress", "default/web", [])
    keeper.wake()
    await published.until(0)
    assert names.to_wire("app.example.org") in first.exact


async def test_a_denied_name_is_not_answered_through_a_wildcard_over_it() -> None:
    published = Published()
    registry = Registry(targets=Targets(default=("192.0.2.10",)), guards=Guards(deny=("no.example.org",)))
    keeper = TableKeeper(registry, ttl=5, publish=published, sources=())
    wildcard = Claim("*.example.org", Reach.ONE_LABEL, Origin("Ingress", "web", "default"))
    keeper.registry.replace("Ingress", "default/web", [wildcard])
    await keeper.swap()
    table = published.tables[-1]
    assert table.find(names.to_wire("yes.example.org")) is not None
    assert table.find(names.to_wire("no.example.org")) is None


async def test_new_search_domains_are_in_the_next_table() -> None:
    published = Published()
    keeper = keeper_of(published)
    wildcard = Claim("*.example.org", Reach.ANY_LABELS, Origin("HTTPRoute", "web", "default"))
    keeper.registry.replace("HTTPRoute", "default/web", [wildcard])
    keeper.registry.replace("Ingress", "default/web", [claim("github.com.eu.example.org")])
    await keeper.swap()
    keeper.registry.set_guarded(search=("eu.example.org",), cluster_domains=("cluster.local",))
    await keeper.swap()
    before, after = published.tables
    for hostname in ("github.com.eu.example.org", "other.eu.example.org"):
        assert before.find(names.to_wire(hostname)) is not None
        assert after.find(names.to_wire(hostname)) is None
    assert after.find(names.to_wire("other.example.org")) is not None


async def test_a_burst_of_changes_is_one_swap(nursery: trio.Nursery) -> None:
    published = Published()
    keeper = keeper_of(published)
    for number in range(1000):
        keeper.registry.replace("Ingress", str(number), [claim(f"host{number}.example.org")])
        keeper.wake()
    nursery.start_soon(keeper.run)
    await published.until(1000)
    assert len(published.tables) == 1


async def test_other_tasks_run_while_a_large_change_is_taken_in(nursery: trio.Nursery) -> None:
    published = Published()
    keeper = keeper_of(published)
    for number in range(5000):
        keeper.registry.replace("Ingress", str(number), [claim(f"host{number}.example.org")])
    turns = 0

    async def other() -> None:
        nonlocal turns
        while not published.tables:
            turns += 1
            await trio.lowlevel.checkpoint()

    nursery.start_soon(other)
    await keeper.swap()
    # Its first turn, and more: 5,000 names take longer than one slice on any machine.
    assert turns > 1


async def test_a_source_is_waited_for_until_its_names_are_in_the_table(nursery: trio.Nursery) -> None:
    published = Published()
    keeper = keeper_of(published, "static", "Ingress")
    nursery.start_soon(keeper.run)
    keeper.synced("static")
    await published.more.wait()
    assert keeper.waiting_for == ("Ingress",)
    keeper.registry.replace("Ingress", "default/web", [claim("app.example.org")])
    keeper.synced("Ingress")
    before = list(keeper.waiting_for)
    await published.until(1)
    assert (before, list(keeper.waiting_for)) == (["Ingress"], [])


@pytest.mark.parametrize("source", ["nobody", ""], ids=["unknown", "empty"])
async def test_a_report_of_an_unexpected_source_changes_nothing(source: str) -> None:
    keeper = keeper_of(Published(), "Ingress")
    keeper.synced(source)
    await keeper.swap()
    assert keeper.waiting_for == ("Ingress",)


def contested(*sources: str, hold: float = 600) -> tuple[TableKeeper, Published]:
    """A keeper whose one name two namespaces claim: `shop` has it, `thief` waits."""
    published = Published()
    registry = Registry(targets=Targets(default=("192.0.2.10",)), guards=Guards(), holds=Holds(hold))
    for day, namespace in enumerate(("shop", "thief"), 1):
        origin = Origin("Ingress", "web", namespace, f"2026-01-0{day}T00:00:00Z")
        registry.replace("Ingress", f"{namespace}/web", [Claim("app.example.org", Reach.NAME, origin)])
    return TableKeeper(registry, ttl=5, publish=published, sources=sources), published


async def test_a_name_changes_hands_by_itself_when_the_time_is_over(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    keeper, published = contested(hold=4)
    await keeper.swap()
    nursery.start_soon(keeper.run)
    begun = trio.current_time()
    keeper.registry.replace("Ingress", "shop/web", [])
    with capture_logs() as logs:
        keeper.wake()
        await published.until(0)
        await published.until(1)
    assert trio.current_time() - begun == pytest.approx(4, abs=0.1)
    warnings = [line for line in logs if line["log_level"] == "warning"]
    assert [(line["hostname"], line["namespace"], line["origin"], line["seconds"]) for line in warnings] == [
        ("app.example.org", "shop", "Ingress thief/web", 4)
    ]


async def test_a_balancer_that_has_left_a_status_leads_here_no_more_when_its_time_is_over(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a quiet cluster, where nothing else makes a new table."""
    monkeypatch.setattr(ownership, "LINGER", 4.0)
    tables: list[HostTable] = []
    registry = Registry(targets=Targets(("10.96.7.7",)), guards=Guards(), ownership=OwnershipSettings(Mode.VERIFY))

    def have(address: str) -> None:
        origin = Origin("Ingress", "web", "shop")
        registry.replace(
            "Ingress", "shop/web", [Claim("app.example.org", Reach.NAME, origin, Terms(status=(address,)))]
        )

    have("203.0.113.10")
    keeper = TableKeeper(registry, ttl=5, publish=tables.append, sources=())
    nursery.start_soon(keeper.run)
    keeper.wake()
    await trio.sleep(1)
    have("203.0.113.11")
    keeper.wake()
    await trio.sleep(1)
    assert set(tables[-1].leads.balancers.known) == {"203.0.113.10", "203.0.113.11"}
    await trio.sleep(4)
    assert set(tables[-1].leads.balancers.known) == {"203.0.113.11"}
    assert len(tables) == 3


async def test_no_name_is_held_before_every_source_has_reported() -> None:
    keeper, published = contested("Ingress", "Gateway API")
    keeper.synced("Ingress")
    await keeper.swap()
    keeper.registry.replace("Ingress", "shop/web", [])
    await keeper.swap()
    assert len(published.tables[-1]) == 1
    keeper.synced("Gateway API")
    await keeper.swap()
    keeper.registry.replace("Ingress", "thief/web", [])
    await keeper.swap()
    assert keeper.registry.holds.due is not None


async def test_many_names_that_change_hands_together_are_logged_as_a_few() -> None:
    keeper, _ = contested()
    names = [f"h{number}.example.org" for number in range(30)]
    for namespace in ("shop", "thief"):
        claims = [Claim(name, Reach.NAME, Origin("Ingress", "many", namespace)) for name in names]
        keeper.registry.replace("Ingress", f"{namespace}/many", claims)
    await keeper.swap()
    keeper.registry.replace("Ingress", "shop/many", [])
    with capture_logs() as logs:
        await keeper.swap()
    warnings = [line for line in logs if line["log_level"] == "warning"]
    assert (len(warnings), warnings[-1]["count"]) == (21, 10)
