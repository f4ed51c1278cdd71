"""The names that lead elsewhere, from the verdicts to what the pages show: the addresses that no status names."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

import trio
from trio.testing import MockClock

from dnsproxy.dns.names import Reach, to_wire
from dnsproxy.dns.wire import Type
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.public_addresses import AddressTally
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import LedElsewhere
from dnsproxy.replace.verdicts import Led
from dnsproxy.serve.led_names import LedNames
from dnsproxy.serve.published_table import PublishedTable
from dnsproxy.serve.report import SelfReport
from tests.kit.dns_server import running

ROUTER: Final = "198.51.100.1"
HOSTS: Final = tuple(f"{name}.example.org" for name in ("app", "shop", "www"))


@dataclass
class Verdicts:
    """What a server says; `version` is raised by a test."""

    version: int = 1
    names: list[Led] = field(default_factory=list)
    asked: int = 0
    looked: int = 0

    def led(self) -> tuple[object, Sequence[Led]]:
        self.looked += 1
        return self.version, self.names

    def asked_names(self) -> int:
        return self.asked


def led(hostname: str, address: str = ROUTER, rtype: int = int(Type.A)) -> Led:
    return Led(to_wire(hostname), rtype, (ip_address(address).packed,))


def keeper_of(*hostnames: str, targets: Targets | None = None) -> TableKeeper:
    registry = Registry(targets=targets or Targets(("192.0.2.1",)), guards=Guards())
    for hostname in hostnames:
        reach = Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME
        origin = Origin("Ingress", hostname, "shop", "2026-01-01T00:00:00Z")
        registry.replace("Ingress", hostname, [Claim(hostname, reach, origin, Terms(ingress_class="nginx"))])
    list(registry.judgements())
    return TableKeeper(registry, ttl=5, publish=lambda _table: None, sources=[])


async def test_an_address_is_named_while_names_lead_there_and_its_numbers_follow(autojump_clock: MockClock) -> None:
    keeper, server = keeper_of(*HOSTS), Verdicts(names=[led(host) for host in HOSTS], asked=4)
    outcomes = keeper.registry.outcomes
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LedNames(server, keeper).run)
        await trio.sleep(1.5)
        (found,) = outcomes.unknown_addresses
        assert (found.address, found.hostnames, found.asked, found.examples) == (ROUTER, 3, 4, HOSTS)
        server.asked = 9
        await trio.sleep(1)
        assert outcomes.unknown_addresses[0].asked == 9
        assert outcomes.led == 1
        server.names, server.version = [], 2
        await trio.sleep(1)
        assert outcomes.unknown_addresses == ()
        nursery.cancel_scope.cancel()


async def test_a_name_counts_once_for_both_types_and_not_if_nobody_claims_it(autojump_clock: MockClock) -> None:
    keeper = keeper_of("app.example.org", "*.apps.example.org", targets=Targets(("auto",)))
    names = [
        led("app.example.org"),
        led("app.example.org", "2001:db8::1", int(Type.AAAA)),
        led("gone.example.org"),
        led("a.apps.example.org"),
        led("b.apps.example.org"),
        Led(b"\3\xff\x00 \7example\3org\0", int(Type.A), (ip_address(ROUTER).packed,)),
    ]
    server = Verdicts(names=names, asked=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LedNames(server, keeper).run)
        await trio.sleep(1.5)
        nursery.cancel_scope.cancel()
    found = {one.address: one.hostnames for one in keeper.registry.outcomes.unknown_addresses}
    assert found == {}  # with the target auto and no Service for the class, nothing here is claimed
    keeper = keeper_of("app.example.org", "*.apps.example.org")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LedNames(server, keeper).run)
        await trio.sleep(1.5)
        nursery.cancel_scope.cancel()
    assert {one.address: one.hostnames for one in keeper.registry.outcomes.unknown_addresses} == {ROUTER: 3}


async def test_the_status_page_has_addresses_and_wide_wildcards_as_notes() -> None:
    keeper = keeper_of(*HOSTS, "*.example.net")
    async with running() as world:
        published = PublishedTable(lambda: world.server.table, world.server.look, waiting_for=tuple)
        report = SelfReport(world.server, keeper, ttl=5, published=published)
        assert not any("no status names" in note for note in report._overview().notes)
        tally = AddressTally()
        for host in HOSTS:
            claim = Claim(host, Reach.NAME, Origin("Ingress", host, "shop"))
            tally.add(LedElsewhere(host, claim, (ROUTER,)), "")
        keeper.registry.outcomes.set_elsewhere([], tally)
        keeper.registry.outcomes.set_asked(4)
        notes = report._overview().notes
    assert any(note.startswith("3 of 4 asked hosts lead to 198.51.100.1, which no status names; ") for note in notes)
    assert any("the wildcard *.example.net of Ingress shop/*.example.net covers the whole" in note for note in notes)
