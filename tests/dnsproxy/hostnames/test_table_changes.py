"""The table's changes: bounded, told once per swap, and only what differs."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.table import Host
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.table_changes import (
    MOST_CHANGES,
    Answer,
    SwapChanges,
    TableChange,
    TableChanges,
    What,
    difference,
)
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.hostnames.wildcards import reach_in_dns, reaches

WEB = Origin("Ingress", "web", "shop")
ONE = Answer(WEB, ("192.0.2.10",), None)


class Played:
    """A keeper whose changes are observed."""

    def __init__(self) -> None:
        self.told: list[SwapChanges] = []
        self.changes = TableChanges(on_swap=self.told.append, now=lambda: 7.0)
        registry = Registry(targets=Targets(default=("192.0.2.10",)), guards=Guards())
        self.keeper = TableKeeper(registry, ttl=5, publish=lambda _: None, sources=())
        self.keeper.observers.append(self.changes)

    def deny(self, *hostnames: str) -> None:
        """Have the next swap write every row with a new writer, as after a primary has denied other names."""
        self.keeper._made_for = self.keeper._made_for[0], hostnames

    async def set(self, *hostnames: str, addresses: tuple[str, ...] = ()) -> list[SwapChanges]:
        """Set the names of one object; returns what the swap told."""
        claims = [Claim(name, reach_in_dns(name), WEB, Terms(addresses)) for name in hostnames]
        self.keeper.registry.replace("Ingress", "shop/web", claims)
        self.told.clear()
        await self.keeper.swap()
        return list(self.told)


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        pytest.param(None, None, None, id="never there"),
        pytest.param(ONE, ONE, None, id="the same"),
        pytest.param(None, ONE, "added", id="new"),
        pytest.param(ONE, None, "removed", id="gone"),
        pytest.param(ONE, Answer(WEB, ("192.0.2.11",), None), "changed", id="another address"),
        pytest.param(ONE, Answer(WEB, ONE.addresses, "nginx"), "changed", id="another class"),
        pytest.param(ONE, Answer(Origin("Ingress", "b", "shop"), ONE.addresses, None), "changed", id="another object"),
    ],
)
def test_a_difference_is_named(before: Answer | None, after: Answer | None, what: What | None) -> None:
    assert difference(before, after) == what


async def test_a_swap_is_told_once_with_names_and_objects() -> None:
    played = Played()
    await played.set("a.example.org", "b.example.org")
    (told,) = await played.set("b.example.org", "c.example.org")
    assert (told.counts, told.more) == ({"added": 1, "changed": 0, "removed": 1}, 0)
    assert sorted(map(str, told.first)) == [
        "+ c.example.org (Ingress shop/web)",
        "- a.example.org (Ingress shop/web)",
    ]


async def test_names_judged_again_without_a_difference_are_no_change() -> None:
    played = Played()
    await played.set("a.example.org")
    assert await played.set("a.example.org") == []
    played.keeper.retell()
    assert await played.set("a.example.org") == []


async def test_a_first_load_is_ten_names_and_500_changes() -> None:
    played = Played()
    (told,) = await played.set(*(f"a{number}.example.org" for number in range(2_000)))
    assert (told.counts["added"], len(told.first), told.more) == (2_000, 10, 1_990)
    assert len(played.changes.newest_first()) == MOST_CHANGES


async def test_the_list_has_the_newest_first_with_the_answer_before_and_after() -> None:
    played = Played()
    await played.set("a.example.org")
    await played.set("a.example.org", addresses=("192.0.2.99",))
    await played.set()
    newest = played.changes.newest_first()
    assert [one.what for one in newest] == ["removed", "changed", "added"]
    assert newest[0].after is None
    assert newest[1].before is not None
    assert newest[1].before.addresses == ("192.0.2.10",)
    assert newest[1].time == 7.0


async def test_a_change_keeps_a_bounded_number_of_addresses() -> None:
    played = Played()
    await played.set("a.example.org", addresses=tuple(f"192.0.2.{number}" for number in range(1, 100)))
    (change,) = played.changes.newest_first()
    assert change.after is not None
    assert len(change.after.addresses) == 8


async def test_names_that_are_written_again_are_no_change_unless_their_addresses_are_others() -> None:
    """A primary's other TTL or denied names make a new writer, whose rows are all new to it."""
    played = Played()
    await played.set("a.example.org", "b.example.org", "*.c.example.org")
    played.deny("other.example.org")
    assert await played.set("a.example.org", "b.example.org", "*.c.example.org") == []
    played.deny("another.example.org")
    (told,) = await played.set("a.example.org", addresses=("192.0.2.99",))
    assert sorted(map(str, told.first)) == [
        "- *.c.example.org (Ingress shop/web)",
        "- b.example.org (Ingress shop/web)",
        "~ a.example.org (Ingress shop/web)",
    ]
    (changed,) = (one for one in told.first if one.what == "changed")
    assert changed.before == Answer(WEB, ("192.0.2.10",), None)
    assert played.keeper._former is None, "the rows of before are freed"


async def test_the_claim_of_a_name_is_kept_no_longer_than_the_name_has_it() -> None:
    """Else each update of an object would leave its former claims behind."""
    played = Played()
    await played.set("a.example.org")
    registry = played.keeper.registry
    newer = Claim("a.example.org", Reach.NAME, WEB, Terms(status=("192.0.2.10",)))
    registry.replace("Ingress", "shop/web", [newer])
    await played.keeper.swap()
    assert list(played.changes._owners[Reach.NAME].values()) == [newer]
    await played.set()
    assert not any(played.changes._owners.values())


async def test_a_claim_that_is_read_again_is_not_kept_beside_the_one_that_the_store_has() -> None:
    """A replica reads the claims of a row anew at each judgement; 100,000 copies would take forty megabytes."""
    played = Played()
    await played.set("a.example.org")
    (kept,) = played.keeper.registry.store.claims_for("a.example.org")
    again = Claim(kept.hostname, kept.reach, kept.origin, kept.terms)
    for addresses in (("192.0.2.10",), ("192.0.2.11",)):
        host = Host("a.example.org", Reach.NAME, addresses)
        played.changes.judged(host, Verdict(again, addresses, ()), before=("192.0.2.10",))
        assert played.changes._owners[Reach.NAME]["a.example.org"] is kept


HOSTNAMES = ("a.example.org", "b.example.org", "*.example.org")
ADDRESSES = ((), ("192.0.2.10",), ("192.0.2.11", "192.0.2.12"))
CLASSES = (None, "inner", "empty")
OBJECTS = ("shop/web", "shop/api", "blog/web")

CLAIMED = st.tuples(
    st.sampled_from(OBJECTS),
    st.lists(st.sampled_from(HOSTNAMES), unique=True),
    st.sampled_from([(), (), ADDRESSES[1]]),
    st.sampled_from(["inner", "inner", "empty", None]),
)
"""An object, and its new claims."""
MOVED = st.sampled_from(ADDRESSES)
"""Other addresses of the Service of a class."""
AGAIN = st.sampled_from(["another writer", "tell again"])
"""All names are judged once more, with a new writer or with the same one."""


def answers_of(registry: Registry) -> dict[tuple[str, Reach], Answer]:
    """What the table has, by the verdicts on all claims."""
    found = {}
    for hostname in HOSTNAMES:
        for reach in reaches(hostname):
            owner = registry.verdict(hostname, reach).owner
            addresses = registry.targets.addresses_for(owner) if owner is not None else ()
            if owner is not None and addresses:
                found[hostname, reach] = Answer(owner.origin, addresses, owner.terms.ingress_class)
    return found


async def play(steps: list[list[Any]]) -> None:
    told: list[TableChange] = []
    targets = Targets(default=("192.0.2.1",), by_class={"inner": ("service:shop/inner",), "empty": ("status",)})
    registry = Registry(targets=targets, guards=Guards())
    keeper = TableKeeper(registry, ttl=5, publish=lambda _: None, sources=())
    keeper.observers.append(TableChanges(on_swap=lambda swapped: told.extend(swapped.first)))
    before: dict[tuple[str, Reach], Answer] = {}
    for number, swap in enumerate(steps):
        for step in swap:
            if step == "another writer":
                keeper._made_for = 5, (f"{number}.example.org",)
            elif step == "tell again":
                keeper.retell()
            elif len(step) == 4:
                key, hostnames, addresses, name = step
                namespace, _, own = key.partition("/")
                terms = Terms(addresses, ingress_class=name)
                origin = Origin("Ingress", own, namespace)
                registry.replace("Ingress", key, [Claim(one, reach_in_dns(one), origin, terms) for one in hostnames])
            else:
                registry.set_services({"shop/inner": step})
        told.clear()
        await keeper.swap()
        after = answers_of(registry)
        assert {(one.hostname, one.reach): (one.before, one.after) for one in told} == {
            row: (before.get(row), after.get(row))
            for row in before.keys() | after.keys()
            if before.get(row) != after.get(row)
        }
        assert len(told) <= len(HOSTNAMES) + 1
        before = after


@given(st.lists(st.lists(CLAIMED | MOVED | AGAIN, min_size=1, max_size=3), min_size=3, max_size=8))
def test_a_swap_tells_exactly_how_the_tables_before_and_after_it_differ(steps: list[list[Any]]) -> None:
    trio.run(play, steps)
