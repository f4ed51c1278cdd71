"""The names that lead elsewhere, as pages and the log have them."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.dns.names import Reach, to_wire
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.replace.verdicts import Led
from dnsproxy.serve.led_names import LedNames

EVENT = "the record of a claimed name leads elsewhere"
ELSEWHERE = b"\xc6\x33\x64\x07"


@dataclass
class Server:
    names: list[Led] = field(default_factory=list)
    version: int = 0

    def tell(self, *names: str) -> None:
        self.names = [Led(to_wire(one), 1, (ELSEWHERE,)) for one in names]
        self.version += 1

    def asked_names(self) -> int:
        return len(self.names)

    def led(self) -> tuple[object, Sequence[Led]]:
        return self.version, self.names


def keeper_of(*hostnames: str, mode: Mode = Mode.VERIFY) -> TableKeeper:
    registry = Registry(targets=Targets(("192.0.2.81",)), guards=Guards(), ownership=OwnershipSettings(mode))
    for one in hostnames:
        reach = Reach.ANY_LABELS if one.startswith("*.") else Reach.NAME
        registry.replace("Ingress", f"shop/{one}", [Claim(one, reach, Origin("Ingress", "web", "shop"))])
    return TableKeeper(registry, ttl=5, publish=lambda _: None, sources=())


async def test_a_claimed_name_that_leads_elsewhere_is_listed_and_logged_once(autojump_clock: MockClock) -> None:
    server, keeper = Server(), keeper_of("www.example.org", "*.apps.example.org")
    with capture_logs() as logs:
        await play_moves(server, keeper)
    logged = [one["hostname"] for one in logs if one["event"] == EVENT]
    assert logged == ["www.example.org", "a.apps.example.org", "a.apps.example.org"]


async def play_moves(server: Server, keeper: TableKeeper) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LedNames(server, keeper).run)
        server.tell("www.example.org", "a.apps.example.org", "nobody.example.net")
        await trio.sleep(5)
        found = {one.hostname: one for one in keeper.registry.outcomes.elsewhere()}
        assert set(found) == {"www.example.org", "a.apps.example.org"}
        assert found["a.apps.example.org"].claim.hostname == "*.apps.example.org"
        assert found["www.example.org"].leads == ("198.51.100.7",)
        assert "left as it is" in found["www.example.org"].reason
        server.tell("www.example.org")
        await trio.sleep(5)
        server.tell("www.example.org", "a.apps.example.org")
        await trio.sleep(5)
        nursery.cancel_scope.cancel()


async def test_a_name_that_is_answered_all_the_same_says_so(autojump_clock: MockClock) -> None:
    server, keeper = Server(), keeper_of("www.example.org", mode=Mode.WARN)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LedNames(server, keeper).run)
        server.tell("www.example.org")
        await trio.sleep(2)
        nursery.cancel_scope.cancel()
    assert [one.answered for one in keeper.registry.outcomes.elsewhere()] == [True]


async def test_many_names_at_once_are_a_few_lines(autojump_clock: MockClock) -> None:
    names = [f"h{number}.example.org" for number in range(100)]
    server, keeper = Server(), keeper_of(*names)
    with capture_logs() as logs:
        await play_once(server, keeper, names)
    assert len([one for one in logs if one["event"] == EVENT]) == 20
    assert [one["count"] for one in logs if one["event"].startswith("more claimed names")] == [80]


async def play_once(server: Server, keeper: TableKeeper, names: Sequence[str]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LedNames(server, keeper).run)
        server.tell(*names)
        await trio.sleep(2)
        nursery.cancel_scope.cancel()


async def test_random_names_do_not_fill_the_log(autojump_clock: MockClock) -> None:
    server, keeper = Server(), keeper_of("*.apps.example.org")
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(LedNames(server, keeper).run)
            for second in range(30):
                server.tell(*(f"x{second}-{number}.apps.example.org" for number in range(10)))
                await trio.sleep(1)
            nursery.cancel_scope.cancel()
    assert len([one for one in logs if one["event"] == EVENT]) == 20
    assert len([one for one in logs if one["event"].startswith("more claimed names")]) == 1


async def test_octets_that_are_no_hostname_are_not_shown(autojump_clock: MockClock) -> None:
    server, keeper = Server(), keeper_of("*.apps.example.org")
    server.names, server.version = [Led(b"\5a\0b\x1bc\4apps\7example\3org\0", 1, (ELSEWHERE,))], 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LedNames(server, keeper).run)
        await trio.sleep(2)
        nursery.cancel_scope.cancel()
    assert keeper.registry.outcomes.elsewhere() == []
