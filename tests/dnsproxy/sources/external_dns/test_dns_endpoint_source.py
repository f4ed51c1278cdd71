"""The source of DNSEndpoints: objects and the table decide its claims, whatever their order."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms, with_terms
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.name_shares import NameShares
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.hostnames.wildcards import wider
from dnsproxy.sources.external_dns.alias_index import MOST_UNCLAIMED, AliasIndex
from dnsproxy.sources.external_dns.dns_endpoint import SOURCE
from dnsproxy.sources.external_dns.dns_endpoint_source import AliasObserver, DnsEndpointSource
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.external_dns.objects import CREATED, dns_endpoint, record

DB = "db.example.org"
SHOP = Claim("shop.org", Reach.NAME, Origin("Ingress", "web", "shop"), Terms(ingress_class="nginx"))
FORWARDED = (
    "its alias is in no row of the table: without another claim the name is forwarded, and public DNS answers it"
)


MOST_ROUNDS = 1000
"""Of one change: more is a loop that never ends."""


class World:
    """A source with its store, and the claims that answer names."""

    def __init__(self, store: Any = None, *, most: int | None = None, wildcard: Claim | None = None) -> None:
        self.wildcard = wildcard
        self.store = ClaimStore()
        self.table: dict[str, Claim] = {}
        self.source = DnsEndpointSource(store(self.store) if store else self.store, most=most, answering=self.answering)

    def answering(self, name: str) -> Claim | None:
        """By the table, else by an alias; below the wildcard, if there is one, by that."""
        below = self.wildcard if self.wildcard and self.wildcard.hostname in wider(name) else None
        return self.table.get(name) or next(filter(None, map(self._row, (name, *wider(name)))), below)

    def _row(self, name: str) -> Claim | None:
        """The oldest claim, whatever the order in which the store got them."""
        return min(self.store.claims_for(name), key=lambda one: (one.origin.created, str(one.origin)), default=None)

    def put(self, key: str, *endpoints: Any, **about: Any) -> frozenset[str]:
        changed = self.source.change(SOURCE, {key: dns_endpoint(*endpoints, place=key, **about)})
        return self.settle(changed)

    def delete(self, key: str) -> frozenset[str]:
        return self.settle(self.source.change(SOURCE, {key: None}))

    def answer(self, name: str, claim: Claim | None) -> frozenset[str]:
        if claim is None:
            self.table.pop(name, None)
        else:
            self.table[name] = claim
        self.source.note_table([name])
        return self.settle()

    def settle(self, changed: frozenset[str] = frozenset()) -> frozenset[str]:
        """As the keeper does: changed claims are rows of the table that may affect others."""
        hostnames = set(changed)
        self.source.note_table(changed)
        rounds = count()
        while not self.source.is_settled:
            assert next(rounds) < MOST_ROUNDS
            found = self.source.settle(1)
            hostnames |= found
            self.source.note_table(found)
        return frozenset(hostnames)

    @property
    def targets(self) -> dict[str, str | None]:
        return {one.hostname: one.terms.target for one in self.store.claims()}

    @property
    def reasons(self) -> list[str]:
        return [one.reason for one in self.store.rejections()]

    @property
    def forwarded(self) -> set[str]:
        """`NAME -> ALIAS` of the names that are forwarded, from the one rejection of each object."""
        found = [one.reason.partition(": ") for one in self.store.rejections() if one.deliberate]
        assert {reason for _, _, reason in found} <= {FORWARDED}
        return {part for parts, _, _ in found for part in parts.split(", ")}


def test_addresses_are_claimed_at_once() -> None:
    world = World()
    assert world.put("shop/a", record(DB, "A", "192.0.2.1"), record(DB, "AAAA", "2001:db8::1")) == {DB}
    (one,) = world.store.claims()
    assert one == Claim(DB, Reach.NAME, Origin(SOURCE, "a", "shop", CREATED), Terms(target="192.0.2.1,2001:db8::1"))
    assert world.delete("shop/a") == {DB}
    assert world.source.is_empty()


@pytest.mark.parametrize(
    ("annotations", "target", "reasons"),
    [
        ({"switchback.dev/target": "service:shop/x"}, "service:shop/x", []),
        ({"switchback.dev/ignore": "true"}, None, [f"{DB}: it is ignored (switchback.dev/ignore)"]),
        ({"switchback.dev/target": "?"}, None, ["'?' is not", "invalid annotation"]),
    ],
    ids=["target", "ignore", "a bad target"],
)
@pytest.mark.parametrize("one", [record(DB, "A", "192.0.2.1"), record(DB, "CNAME", "lb.org")], ids=["A", "CNAME"])
def test_the_annotations_of_ours_count(one: Any, annotations: Any, target: str | None, reasons: list[str]) -> None:
    world = World()
    world.put("shop/a", one, annotations=annotations)
    assert world.targets == ({DB: target} if target else {})
    assert len(world.reasons) == len(reasons)
    assert all(part in one for part, one in zip(reasons, world.reasons, strict=True))
    assert FORWARDED not in "".join(world.reasons)


def test_an_alias_of_a_name_in_the_table_is_answered_as_that_is() -> None:
    world = World()
    world.table["shop.org"] = SHOP
    world.put("shop/a", record(DB, "CNAME", "shop.org"))
    (one,) = world.store.claims()
    assert (one.hostname, one.terms.ingress_class, one.terms.target, one.terms.declared) == (
        DB,
        "nginx",
        None,
        ("shop.org",),
    )
    assert world.reasons == []
    assert world.answer("shop.org", with_terms(SHOP, ingress_class="other")) == {DB}
    assert [one.terms.ingress_class for one in world.store.claims()] == ["other"]
    assert world.answer("shop.org", None) == {DB}
    assert world.forwarded == {f"{DB} -> shop.org"}
    assert world.targets == {}
    assert world.answer("shop.org", SHOP) == {DB}
    assert (world.targets, world.reasons) == ({DB: None}, [])


def test_an_alias_of_a_name_below_a_wildcard_follows_the_wildcard() -> None:
    world = World()
    world.table["a.shop.org"] = replace(SHOP, hostname="*.shop.org")
    world.put("shop/a", record(DB, "CNAME", "a.shop.org"))
    del world.table["a.shop.org"]
    assert world.source.is_affected("*.shop.org")
    assert world.source.is_affected("*.org")
    assert not world.source.is_affected("shop.org")
    assert world.source.note_table(["*.shop.org"])
    assert world.settle() == {DB}
    assert not world.source.note_table(["other.org", "*.other.org"])


def test_an_alias_of_a_name_outside_claims_nothing_and_one_rejection_says_it() -> None:
    world = World()
    world.put("shop/a", record(DB, "A", "192.0.2.1"))
    assert world.put("shop/a", record(DB, "CNAME", "lb.org"), record("b.org", "CNAME", "lb2.org")) == {DB}
    assert world.targets == {}
    (one,) = world.store.rejections()
    shown = f"{DB} -> lb.org, b.org -> lb2.org: {FORWARDED}"
    assert one == Rejection(Origin(SOURCE, "a", "shop", CREATED), shown, deliberate=True)
    assert world.delete("shop/a") == frozenset()
    assert world.reasons == []
    assert world.source.is_empty()


def test_the_addresses_of_a_snapshot_end_with_the_first_report() -> None:
    """An earlier version saved what it had looked up."""
    world = World()
    saved = Claim(DB, Reach.NAME, Origin(SOURCE, "a", "shop", CREATED), Terms(target="192.0.2.9", declared=("lb.org",)))
    world.store.restore(SOURCE, "shop/a", [saved])
    assert world.put("shop/a", record(DB, "CNAME", "lb.org")) == {DB}
    assert (world.targets, world.store.restored(SOURCE)) == ({}, 0)


def test_aliases_of_one_namespace_are_followed() -> None:
    world = World()
    world.put("shop/a", record("a.org", "CNAME", "b.org"))
    assert world.forwarded == {"a.org -> b.org"}
    world.put("shop/b", record("b.org", "CNAME", "end.org"))
    assert world.forwarded == {"a.org -> end.org", "b.org -> end.org"}
    assert world.answer("end.org", SHOP) == {"a.org", "b.org"}
    assert (world.targets, world.forwarded) == ({"a.org": None, "b.org": None}, set())
    world.delete("shop/b")
    assert (world.targets, world.forwarded) == ({}, {"a.org -> b.org"})


def test_of_two_objects_of_one_namespace_the_older_one_is_followed() -> None:
    world = World()
    world.put("shop/a", record("a.org", "CNAME", "b.org"))
    world.put("shop/new", record("b.org", "CNAME", "new.org"), created="2026-02-02T00:00:00Z")
    world.put("shop/old", record("b.org", "CNAME", "old.org"), created="2026-01-01T00:00:00Z")
    world.put("web/older", record("b.org", "CNAME", "other.org"), created="2020-01-01T00:00:00Z")
    assert "a.org -> old.org" in world.forwarded
    world.delete("shop/old")
    assert "a.org -> new.org" in world.forwarded


def test_an_alias_of_another_namespace_is_never_followed() -> None:
    """Two of them could keep each other's addresses for ever, and its owner could lead ours anywhere."""
    world = World()
    world.put("web/b", record("b.org", "CNAME", "a.org"))
    world.put("shop/a", record("a.org", "CNAME", "b.org"))
    assert (world.targets, world.forwarded) == ({}, {"a.org -> b.org", "b.org -> a.org"})
    world.table["shop.org"] = SHOP
    world.put("web/b", record("b.org", "CNAME", "shop.org"))
    assert (world.targets, world.forwarded) == ({"b.org": None}, {"a.org -> b.org"})


def test_the_addresses_of_another_namespace_are_those_of_the_table() -> None:
    world = World()
    world.put("web/b", record("b.org", "A", "192.0.2.5"))
    world.put("shop/a", record("a.org", "CNAME", "b.org"))
    assert {one.hostname: (one.terms.target, one.terms.target_from) for one in world.store.claims()} == {
        "b.org": ("192.0.2.5", ""),
        "a.org": ("192.0.2.5", "web"),
    }
    world.put("web/b", record("b.org", "A", "192.0.2.6"))
    assert world.targets["a.org"] == "192.0.2.6"


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")], ids=str)
def test_a_loop_is_rejected_whatever_comes_first(order: tuple[str, str]) -> None:
    world = World()
    other = {"x": "y", "y": "x"}
    for name in order:
        world.put(f"shop/{name}", record(f"{name}.org", "CNAME", f"{other[name]}.org"))
    assert (world.targets, world.forwarded) == ({}, set())
    assert sorted(world.reasons) == [
        "x.org: its alias leads back to x.org (x.org -> y.org -> x.org)",
        "y.org: its alias leads back to y.org (y.org -> x.org -> y.org)",
    ]
    world.delete("shop/y")
    assert (world.targets, world.forwarded) == ({}, {"x.org -> y.org"})


@pytest.mark.parametrize(
    "aliases",
    [
        pytest.param({"x.shop.org": "y.shop.org", "y.shop.org": "x.shop.org"}, id="two names"),
        pytest.param({"*.w.shop.org": "x.w.shop.org"}, id="a wildcard"),
        pytest.param({"x.shop.org": "*.shop.org"}, id="the wildcard itself"),
    ],
)
def test_a_loop_below_a_wildcard_comes_to_rest(aliases: dict[str, str]) -> None:
    """Each row below the wildcard is an alias as soon as it has an end, and then has none."""
    world = World(wildcard=replace(SHOP, hostname="*.shop.org"))
    world.put("shop/loop", *(record(name, "CNAME", alias) for name, alias in aliases.items()))
    before = world.targets
    assert len(world.reasons) == len(aliases)
    for name in aliases:
        world.source.note_table([name])
    assert world.settle() == frozenset()
    assert world.targets == before == {}


def test_two_aliases_of_each_other_rest_whatever_else_claims_their_names() -> None:
    """Two Ingresses that the aliases beat by their age."""
    world = World()
    for name in ("x.shop.org", "y.shop.org"):
        world.table[name] = replace(SHOP, hostname=name)
    loop = [("x.shop.org", "y.shop.org"), ("y.shop.org", "x.shop.org")]
    world.put("shop/loop", *(record(name, "CNAME", alias) for name, alias in loop))
    assert world.targets == {}


def test_a_name_of_the_table_counts_below_a_wildcard_alias_of_the_namespace() -> None:
    world = World()
    world.table["x.w.org"] = replace(SHOP, hostname="x.w.org")
    world.put("shop/a", record("a.org", "CNAME", "x.w.org"), record("*.w.org", "CNAME", "lb.org"))
    assert {one.hostname: one.terms.ingress_class for one in world.store.claims()} == {"a.org": "nginx"}
    assert world.forwarded == {"*.w.org -> lb.org"}


def test_an_unreadable_object_harms_no_other() -> None:
    world = World()
    world.table["shop.org"] = SHOP
    world.put("shop/a", record(DB, "CNAME", "shop.org"))
    world.put("shop/b", record("b.org", "CNAME", "shop.org"))
    broken = Unreadable(ObjectMeta("a", "shop"), "Expected `str`, got `int`")
    assert world.source.change(SOURCE, {"shop/a": broken}) == {DB}
    assert world.reasons == ["unreadable: Expected `str`, got `int`"]
    assert world.targets == {"b.org": None}


def test_of_an_object_that_is_left_out_nothing_is_kept() -> None:
    """So the number of kept objects has the limit that the number of names has."""
    limits = NameLimits(per_object=10, per_namespace=2, total=10)
    shares: list[NameShares] = []

    def make(store: ClaimStore) -> NameShares:
        shares.append(NameShares(store, limits=limits))
        return shares[0]

    world = World(make)
    for number in range(4):
        world.table[f"lb{number}.org"] = SHOP
        world.put(f"shop/a{number}", record(f"a{number}.org", "CNAME", f"lb{number}.org"))

    def affecting() -> list[int]:
        return [number for number in range(4) if world.source.is_affected(f"lb{number}.org")]

    assert affecting() == [0, 1]
    world.delete("shop/a0")
    for _ in shares[0].settle():
        pass
    assert shares[0].next_wanted() == (SOURCE, "shop/a2")
    world.put("shop/a2", record("a2.org", "CNAME", "lb2.org"))
    assert affecting() == [1, 2]


def many(first: int, end: int) -> list[Any]:
    return [record(f"h{number}.org", "CNAME", f"t{number}.org") for number in range(first, end)]


def test_of_aliases_that_claim_nothing_a_namespace_has_a_limit() -> None:
    """No share of names counts them, and each has its entries in the index."""
    world = World()
    world.put("shop/loop", record("x.org", "CNAME", "x.org"), record(DB, "A", "192.0.2.1"))
    world.put("shop/many", *many(0, MOST_UNCLAIMED - 3))
    world.table["t20003.org"] = SHOP
    world.put("shop/more", *many(20_000, 20_005), record("b.org", "A", "192.0.2.2"))
    assert [world.source.is_affected(f"t{number}.org") for number in range(20_000, 20_005)] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert "its namespace has 10,000 aliases that claim nothing: 2 of this object are left out until it changes" in (
        world.reasons
    )
    world.put("shop/last", *many(30_000, 30_002))
    assert not world.source.is_affected("t30000.org")
    world.put("web/other", *many(40_000, 40_001))
    assert world.source.is_affected("t40000.org")
    assert world.targets == {DB: "192.0.2.1", "h20003.org": None, "b.org": "192.0.2.2"}
    world.delete("shop/many")
    world.put("shop/last", *many(30_000, 30_002))
    assert world.answer("t30000.org", SHOP) == {"h30000.org"}
    for key in ("shop/loop", "shop/more", "shop/last", "web/other"):
        world.delete(key)
    assert world.source.is_empty()


def test_100000_endpoints_in_one_object_block_nobody() -> None:
    world = World(most=1_000)
    world.put("shop/many", *(record(f"h{n}.org", "CNAME", f"t{n}.org") for n in range(100_000)))
    world.put("shop/a", record(DB, "A", "192.0.2.1"))
    assert world.targets == {DB: "192.0.2.1"}
    (one,) = [one for one in world.reasons if FORWARDED in one]
    assert len(one) < 500
    assert [world.source.is_affected(f"t{number}.org") for number in (0, 999, 1_000)] == [True, True, False]


def test_each_name_of_a_chain_is_asked_of_the_table_once() -> None:
    """A thousand aliases, each of the next one: with 120 labels each, they blocked the loop for a second."""
    asked: list[str] = []
    source = DnsEndpointSource(ClaimStore(), most=1_000, answering=asked.append)
    chain = [record(f"a{n}.org", "CNAME", f"a{n + 1}.org") for n in range(100)]
    source.change(SOURCE, {"shop/chain": dns_endpoint(*chain)})
    assert sorted(asked) == sorted(f"a{n}.org" for n in range(1, 101))


DEEP = f"{'a.' * 100}org"


def test_a_wildcard_below_many_labels_answers_an_alias_as_soon_as_it_is_there() -> None:
    world = World()
    world.put("shop/alias", record(DB, "CNAME", f"x.{DEEP}"))
    world.put("web/other", record(f"*.b.{DEEP}", "A", "192.0.2.9"))
    world.put("web/wild", record(f"*.{DEEP}", "A", "192.0.2.1"))
    assert world.targets[DB] == "192.0.2.1"
    world.delete("web/wild")
    assert DB not in world.targets


def test_a_name_of_many_labels_has_few_entries_in_the_index() -> None:
    """Those of a thousand such names took 50 MB."""
    index = AliasIndex()
    index.watch("shop/a", [f"x.{DEEP}"])
    assert index.watched == 11
    index.watch("shop/a", ["a.b.org"])
    assert index.watched == 3
    assert list(index.watchers("*.org")) == list(index.watchers("*.b.org")) == ["shop/a"]
    assert not index.watchers("*.a.b.org")


class Observed:
    """A world with its observer, which settles the source when it is woken."""

    def __init__(self) -> None:
        self.world = World()
        self.woken = 0
        self.observer = AliasObserver(self.world.source, wake=self.wake)

    def wake(self) -> None:
        self.woken += 1
        self.world.settle()

    def judge(self, *hostnames: str) -> None:
        """The keeper judged rows again, and swapped the table."""
        for hostname in hostnames:
            self.observer.judged(Host(hostname, Reach.NAME, ()), Verdict(None, (), ()), before=())
        self.observer.published(TABLE)


TABLE: Any = HostTable
"""It is not read."""


def test_a_row_of_the_table_that_changes_reaches_its_aliases() -> None:
    observed = Observed()
    world = observed.world
    world.put("shop/a", record(DB, "CNAME", "shop.org"))
    world.table["shop.org"] = SHOP
    observed.judge("other.org")
    assert (world.targets, observed.woken) == ({}, 0)
    observed.judge("other.org", "shop.org")
    assert (world.targets, observed.woken) == ({DB: None}, 1)
    observed.judge()
    assert observed.woken == 1
    del world.table["shop.org"]
    observed.judge("*.org")
    assert world.targets == {}


def test_rows_that_affect_no_alias_are_not_kept() -> None:
    observed = Observed()
    for number in range(1_000):
        observed.observer.judged(Host(f"h{number}.org", Reach.NAME, ()), Verdict(None, (), ()), before=())
    assert not observed.observer._judged


def test_the_name_of_another_claim_is_no_alias_of_the_source() -> None:
    """A guard for the tests' own table."""
    world = World()
    world.table["shop.org"] = Claim(
        "shop.org", Reach.NAME, Origin("DNSEndpoint", "x", "web"), Terms(target="192.0.2.3")
    )
    world.put("shop/a", record(DB, "CNAME", "shop.org"))
    assert world.targets == {DB: "192.0.2.3"}


NAMES = ["a.org", "b.org", "c.a.org", "*.a.org"]
ENDS = ["a.org", "b.org", "c.a.org", "end.org"]
RECORDS = st.builds(record, st.sampled_from(NAMES), st.just("CNAME"), st.sampled_from(ENDS)) | st.builds(
    record, st.sampled_from(NAMES), st.just("A"), st.sampled_from(["192.0.2.1", "?"])
)
OBJECTS = st.builds(lambda records, age: (records, age), st.lists(RECORDS, max_size=3), st.sampled_from("12"))
KEYS = ["shop/x", "shop/y", "web/z"]
STEPS = st.tuples(st.just("put"), st.sampled_from(KEYS), st.none() | OBJECTS) | st.tuples(
    st.just("answer"), st.sampled_from(["b.org", "end.org"]), st.sampled_from([None, SHOP])
)


def play(world: World, key: str, one: Any) -> None:
    if one is None:
        world.delete(key)
    else:
        world.put(key, *one[0], created=f"2026-0{one[1]}-01T00:00:00Z")


@given(st.lists(STEPS, max_size=12), st.randoms())
def test_claims_depend_on_the_last_state_alone(history: list[Any], random: Any) -> None:
    """Of the table only what is not an alias: no order makes two aliases keep each other alive."""
    travelled, expected = World(), World()
    last: dict[str, Any] = {}
    for verb, name, value in history:
        if verb == "put":
            play(travelled, name, value)
            last[name] = value
        else:
            travelled.answer(name, value)
    for name, claim in travelled.table.items():
        expected.answer(name, claim)
    for key in random.sample(sorted(last), len(last)):
        play(expected, key, last[key])
    assert set(travelled.store.claims()) == set(expected.store.claims())
    assert set(travelled.store.rejections()) == set(expected.store.rejections())
    for key in last:
        travelled.delete(key)
    assert travelled.source.is_empty()
    assert not list(travelled.store.claims())
