"""The addresses behind the hostnames of load balancers."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Query
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.balancer_addresses import MOST, BalancerAddresses
from tests.kit.public_dns import PublicDns


class Asked:
    """A public DNS that counts, and can be silent."""

    def __init__(self, *lines: str) -> None:
        self.public = PublicDns(*lines)
        self.asked: list[bytes] = []
        self.silent = False

    async def __call__(self, query: Query) -> bytes | None:
        self.asked.append(query.name)
        await trio.lowlevel.checkpoint()
        return None if self.silent else self.public.reply(query.message)


def keeper_of(*points: str) -> TableKeeper:
    registry = Registry(targets=Targets(("10.96.7.7",)), guards=Guards(), ownership=OwnershipSettings(Mode.VERIFY))
    for number, point in enumerate(points):
        claim = Claim(f"h{number}.example.org", Reach.NAME, Origin("Ingress", "web", "shop"), Terms(status=(point,)))
        registry.replace("Ingress", f"shop/{number}", [claim])
    return TableKeeper(registry, ttl=5, publish=lambda _: None, sources=())


async def test_the_addresses_of_a_hostname_lead_here_too_and_follow_it(autojump_clock: MockClock) -> None:
    keeper, asked = (
        keeper_of("lb.example.net"),
        Asked("lb.example.net 30 A 203.0.113.10", "lb.example.net 30 AAAA 2001:db8::10"),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(BalancerAddresses(keeper, asked).run)
        await trio.sleep(3)
        assert set(keeper.registry.balancers.known) == {"lb.example.net", "203.0.113.10", "2001:db8::10"}
        assert len(asked.asked) == 2
        asked.public.set("lb.example.net 30 A 203.0.113.11", "lb.example.net 30 AAAA 2001:db8::10")
        await trio.sleep(32)
        assert set(keeper.registry.balancers.known) == {"lb.example.net", "203.0.113.11", "2001:db8::10"}
        nursery.cancel_scope.cancel()


async def test_without_an_answer_the_last_addresses_stay(autojump_clock: MockClock) -> None:
    keeper, asked = keeper_of("lb.example.net"), Asked("lb.example.net 30 A 203.0.113.10")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(BalancerAddresses(keeper, asked).run)
        await trio.sleep(3)
        asked.silent = True
        await trio.sleep(40)
        assert "203.0.113.10" in keeper.registry.balancers.known
        keeper.registry.replace("Ingress", "shop/0", ())
        await trio.sleep(3)
        assert not keeper.registry.balancers.known
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("left", [(), ("lb.example.net 30 TXT parked",)], ids=["no such name", "no address"])
async def test_without_a_record_the_last_addresses_go(left: tuple[str, ...], autojump_clock: MockClock) -> None:
    """The balancer was deleted, and its address is somebody else's soon; a status still has its hostname."""
    keeper, asked = keeper_of("lb.example.net"), Asked("lb.example.net 30 A 203.0.113.10")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(BalancerAddresses(keeper, asked).run)
        await trio.sleep(3)
        asked.public.set(*left)
        await trio.sleep(40)
        assert set(keeper.registry.balancers.known) == {"lb.example.net"}
        nursery.cancel_scope.cancel()


async def test_addresses_in_a_status_are_asked_for_nowhere(autojump_clock: MockClock) -> None:
    keeper, asked = keeper_of("203.0.113.10", "2001:db8::10"), Asked()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(BalancerAddresses(keeper, asked).run)
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert asked.asked == []


async def test_of_many_hostnames_so_many_are_asked(autojump_clock: MockClock) -> None:
    keeper, asked = keeper_of(*(f"lb{number:04}.example.net" for number in range(MOST + 20))), Asked()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(BalancerAddresses(keeper, asked).run)
        await trio.sleep(3)
        nursery.cancel_scope.cancel()
    assert len(set(asked.asked)) == MOST
