"""The table's changes: bounded, told once per swap, and only what differs."""

from __future__ import annotations

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.table_changes import MOST_CHANGES, Answer, SwapChanges, TableChanges, What, difference
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.wildcards import reach_in_dns

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
    """A primary's new TTL or guards make a new writer, whose rows are all new to it."""
    played = Played()
    await played.set("a.example.org", "b.example.org", "*.c.example.org")
    played.keeper._made_for = (6, ())
    assert await played.set("a.example.org", "b.example.org", "*.c.example.org") == []
    played.keeper._made_for = (7, ())
    (told,) = await played.set("a.example.org", addresses=("192.0.2.99",))
    assert sorted(map(str, told.first)) == [
        "- *.c.example.org (Ingress shop/web)",
        "- b.example.org (Ingress shop/web)",
        "~ a.example.org (Ingress shop/web)",
    ]
    (changed,) = (one for one in told.first if one.what == "changed")
    assert changed.before == Answer(WEB, ("192.0.2.10",), None)


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
