"""Lookups side by side: nobody waits for the nameserver of another, and the bounds are kept."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections import Counter

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.fair_queue import FairQueue, Turn
from dnsproxy.hostnames.lookup_slots import LookupSlots
from dnsproxy.hostnames.lookup_workers import LookupWorkers
from dnsproxy.hostnames.ownership import Mode
from dnsproxy.hostnames.ownership_schedule import DEFAULT_PACE
from tests.dnsproxy.serve.test_ownership_watch import APP, BALANCER, RELAY, PublicDns, claim, passes, watching

OTHERS = [claim(f"h{number}.example.org", f"h{number}", BALANCER) for number in range(20)]


def of(namespace: str, count: int) -> list[Claim]:
    """Claims of a namespace to names below NAMESPACE.example.net."""
    claims = [claim(f"h{number}.{namespace}.example.net", f"{namespace}-{number}", BALANCER) for number in range(count)]
    return [replace(one, origin=replace(one.origin, namespace=namespace)) for one in claims]


def rounds_of(dns: PublicDns, hostname: str) -> int:
    """How often a name was looked up."""
    return len({time for name, _, time in dns.asked if name == hostname})


async def test_a_tenant_whose_nameserver_is_silent_does_not_delay_the_rounds_of_another(
    autojump_clock: MockClock,
) -> None:
    records = {"*.slow.example.net": None, "*.example.org": [BALANCER]}
    async with watching(records) as watched:
        for one in (*of("slow", 2000), *OTHERS):
            watched.registry.replace("Ingress", one.hostname, [one])
        await passes(60)
        assert {rounds_of(watched.dns, one.hostname) for one in OTHERS} == {1}
        await passes(2 * (1 + DEFAULT_PACE.jitter) * DEFAULT_PACE.every)
        assert {rounds_of(watched.dns, one.hostname) for one in OTHERS} == {3}


async def test_first_lookups_that_get_no_answer_do_not_delay_those_of_another(autojump_clock: MockClock) -> None:
    async with watching({"*.slow.example.net": None, APP: [BALANCER]}, mode=Mode.ENFORCE) as watched:
        watched.put(*of("slow", 2000))
        await passes(1)
        for _ in range(5):
            watched.put(claim(APP, "app", BALANCER))
            await passes(0.5)
            assert watched.answer() == (RELAY,)
            watched.registry.replace("Ingress", f"app {APP}", [])
            watched.watch.note([APP])
            await passes(2)
            assert not watched.registry.has_record(APP)


@pytest.mark.parametrize(
    ("mode", "most", "each"),
    [
        pytest.param(Mode.WARN, 16, 2, id="warn"),
        pytest.param(Mode.ENFORCE, 16 + 32, 2 + 16, id="enforce, first lookups have their own"),
    ],
)
async def test_no_more_lookups_run_at_once_than_the_bounds_allow(
    mode: Mode, most: int, each: int, autojump_clock: MockClock
) -> None:
    highest: Counter[str] = Counter()
    async with watching({}, mode=mode) as watched:
        dns = watched.dns

        def count() -> None:
            by_namespace = Counter(name.split(".")[1] for name, questions in dns.waiting.items() if questions)
            highest.update({"all": max(0, by_namespace.total() - highest["all"])})
            highest.update({"each": max(0, max(by_namespace.values()) - highest["each"])})

        dns.on_wait = count
        dns.records |= {f"*.n{number}.example.net": None for number in range(40)}
        watched.put(*of("n0", 100))
        await passes(100)
        assert highest["all"] == highest["each"] == each, "alone, a namespace has its share"
        watched.put(*(one for number in range(1, 40) for one in of(f"n{number}", 100)))
        await passes(100)
    assert most - 2 <= highest["all"] <= most
    assert highest["each"] == each


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.ENFORCE])
async def test_cancelled_lookups_leave_nothing(mode: Mode, autojump_clock: MockClock) -> None:
    async with watching({"*.slow.example.net": None}, *of("slow", 4), mode=mode) as watched:
        await passes(1)
        assert +watched.dns.waiting
    assert not +watched.dns.waiting
    assert watched.watch._looking == {}
    assert mode is Mode.WARN or watched.watch.new == 0


async def test_whatever_ends_a_lookup_its_slot_is_free_again() -> None:
    """Two lookups of one namespace at a time, and then a failure, which ends all of them."""
    slots = LookupSlots(4, each=2)
    queue = FairQueue(10)
    for number in range(3):
        queue.put(str(number), "shop")
    looked: list[str] = []
    freed: list[int] = []

    async def seek(slots: LookupSlots) -> Turn:
        while (turn := queue.take(slots.full)) is None:
            await trio.lowlevel.checkpoint()
        return turn

    async def look(hostname: str) -> None:
        looked.append(hostname)
        if hostname == "0":
            raise ZeroDivisionError
        await trio.lowlevel.checkpoint()

    workers = LookupWorkers(slots, gap=0, seek=seek, look=look, freed=lambda: freed.append(slots.free))
    with trio.fail_after(30), pytest.raises(ExceptionGroup):
        await workers.run()
    assert (looked, slots.free, len(freed)) == (["2", "1", "0"], 4, 3)
