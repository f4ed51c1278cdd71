"""The registry: changes in any order and any slices lead to the same table as the final claims."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.table import HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms, with_terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.ownership import LINGER, Mode, OwnershipSettings
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets
from tests.dnsproxy.answers.test_table_writer import contents
from tests.kit.messages import addresses_of

TARGETS: Final = Targets(default=("192.0.2.1",), by_class={"inner": ("192.0.2.2",), "empty": ()})
GUARDS: Final = Guards(deny=("intern.example.org",), search=("y.app.example.org",))

Key = tuple[str, str]
State = dict[Key, tuple[Claim, ...]]

HOSTNAMES: Final = ("example.org", "app.example.org", "x.app.example.org", "intern.example.org", "a.cluster.local")


class Following:
    """A registry and the table that follows it."""

    def __init__(self, *, ownership: OwnershipSettings | None = None) -> None:
        self.registry = Registry(targets=TARGETS, guards=GUARDS, ownership=ownership)
        self.writer = TableWriter(ttl=5, never=self.registry.denied)

    def replace(self, key: Key, *claims: Claim) -> None:
        self.registry.replace(*key, claims)

    def table(self) -> HostTable:
        for host in self.registry.changes():
            self.writer.put(host)
        self.writer.close(self.registry.closed)
        return self.writer.publish()


def claim(
    hostname: str,
    name: str = "app",
    *,
    created: str = "2026-01-01T00:00:00Z",
    reach: Reach = Reach.ONE_LABEL,
    ingress_class: str | None = None,
    addresses: tuple[str, ...] = (),
    status: tuple[str, ...] = (),
) -> Claim:
    """A claim of an Ingress, or of a line of a hosts file; `reach` applies to wildcards."""
    origin = Origin("hosts file", name) if addresses else Origin("Ingress", name, "shop", created)
    reach = reach if hostname.startswith("*.") else Reach.NAME
    return Claim(hostname, reach, origin, Terms(addresses, ingress_class, status=status))


@st.composite
def object_claims(draw: st.DrawFn) -> tuple[Key, tuple[Claim, ...]]:
    """The claims of one object of one source: each row once, as in every source."""
    source, name = draw(st.sampled_from(["ingress", "hosts"])), draw(st.sampled_from("abc"))
    created = draw(st.sampled_from(["2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"]))
    ingress_class = draw(st.sampled_from([None, "inner", "empty"]))
    status = draw(st.sampled_from([(), ("203.0.113.1",), ("lb.example.net", "203.0.113.2")]))
    wildcard = st.sampled_from([Reach.ONE_LABEL, Reach.ANY_LABELS])
    rows = draw(st.lists(st.tuples(st.sampled_from(HOSTNAMES), st.booleans(), wildcard), max_size=4))
    claims = {}
    for hostname, wild, reach in rows:
        row = claim(
            f"*.{hostname}" if wild else hostname,
            name,
            created=created,
            reach=reach,
            ingress_class=ingress_class,
            addresses=("192.0.2.9",) if source == "hosts" else (),
            status=() if source == "hosts" else status,
        )
        claims[row.hostname, row.reach] = row
    return (source, name), tuple(claims.values())


changes = st.lists(object_claims(), max_size=8)


def final_state(steps: list[tuple[Key, tuple[Claim, ...]]]) -> State:
    return {key: claims for key, claims in dict(steps).items() if claims}


def build(state: State, *, backwards: bool = False) -> Following:
    following = Following()
    for key, claims in sorted(state.items(), reverse=backwards):
        following.replace(key, *(reversed(claims) if backwards else claims))
    return following


@given(changes, st.integers(1, 5))
def test_following_changes_comes_to_the_table_of_the_final_claims(
    steps: list[tuple[Key, tuple[Claim, ...]]], slice_size: int
) -> None:
    following = Following()
    for number, (key, claims) in enumerate(steps):
        following.replace(key, *claims)
        if number % slice_size == 0:
            following.table()
    assert contents(following.table()) == contents(build(final_state(steps)).table())


@given(changes)
def test_the_order_of_objects_and_of_their_claims_does_not_matter(steps: list[tuple[Key, tuple[Claim, ...]]]) -> None:
    one, other = build(final_state(steps)), build(final_state(steps), backwards=True)
    assert contents(one.table()) == contents(other.table())
    assert {repr(excluded) for excluded in one.registry.outcomes.excluded()} == {
        repr(excluded) for excluded in other.registry.outcomes.excluded()
    }


@given(changes)
def test_every_claim_is_answered_or_lost_for_a_reason(steps: list[tuple[Key, tuple[Claim, ...]]]) -> None:
    state = final_state(steps)
    following = build(state)
    following.table()
    registry = following.registry
    excluded = registry.outcomes.excluded()
    claims = [one for claims in state.values() for one in claims]
    winners = [one for one in claims if registry.verdict(one.hostname, one.reach).winner == one]
    assert sorted(map(repr, [*winners, *(one.claim for one in excluded)])) == sorted(map(repr, claims))
    assert all(one.reason for one in excluded)


@given(changes)
def test_removing_everything_leaves_an_empty_table(steps: list[tuple[Key, tuple[Claim, ...]]]) -> None:
    following = build(final_state(steps))
    following.table()
    for key, _ in steps:
        following.replace(key)
    table = following.table()
    assert contents(table) == ({}, {}, {})
    assert len(table) == 0
    assert following.registry.outcomes.excluded() == []


@given(changes)
def test_saying_the_same_again_changes_nothing(steps: list[tuple[Key, tuple[Claim, ...]]]) -> None:
    state = final_state(steps)
    following = build(state)
    following.table()
    for key, claims in state.items():
        following.replace(key, *claims)
    assert list(following.registry.changes()) == []


def test_only_touched_hostnames_are_reported() -> None:
    following = build({("ingress", "a"): (claim("a.example.org"),), ("ingress", "b"): (claim("b.example.org", "b"),)})
    following.table()
    following.replace(("ingress", "b"), claim("c.example.org", "b"))
    assert {host.hostname for host in following.registry.changes()} == {"b.example.org", "c.example.org"}


def test_the_loser_takes_over_when_the_winner_goes() -> None:
    following = Following()
    following.replace(("ingress", "old"), claim("app.example.org", "old", ingress_class="inner"))
    following.replace(("ingress", "new"), claim("app.example.org", "new", created="2026-06-01T00:00:00Z"))
    assert addresses_of(following.table(), "app.example.org") == ("192.0.2.2",)
    assert [excluded.reason for excluded in following.registry.outcomes.excluded()] == ["Ingress shop/old has it"]
    following.replace(("ingress", "old"))
    assert addresses_of(following.table(), "app.example.org") == ("192.0.2.1",)
    assert following.registry.outcomes.excluded() == []


def test_names_whose_target_has_no_address_are_counted_until_it_has_one() -> None:
    following = Following()
    for number in range(3):
        key = "ingress", str(number)
        following.replace(key, claim(f"h{number}.example.org", str(number), ingress_class="empty"))
    following.replace(("ingress", "denied"), claim("intern.example.org"))
    following.table()
    assert following.registry.outcomes.waiting == 3, "a name that is denied waits for nothing"
    following.replace(("ingress", "0"), claim("h0.example.org", "0"))
    following.replace(("ingress", "1"))
    following.table()
    assert following.registry.outcomes.waiting == 1


def test_objects_of_one_name_in_two_sources_are_two() -> None:
    following = Following()
    following.replace(("ingress", "x"), claim("app.example.org"))
    following.replace(("hosts", "x"), claim("app.example.org", addresses=("192.0.2.9",)))
    assert addresses_of(following.table(), "app.example.org") == ("192.0.2.9",)
    following.replace(("hosts", "x"))
    assert addresses_of(following.table(), "app.example.org") == ("192.0.2.1",)


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        pytest.param("app.example.org", ("192.0.2.5",), id="exact beats wildcard"),
        pytest.param("x.example.org", ("192.0.2.1",), id="one label"),
        pytest.param("x.y.example.org", ("192.0.2.6",), id="two labels go past a wildcard of one"),
        pytest.param("x.deep.example.org", ("192.0.2.2",), id="longer beats shorter"),
        pytest.param("intern.example.org", None, id="a denied name below a wildcard"),
        pytest.param("example.org", None, id="the parent itself"),
    ],
)
def test_the_rows_of_several_objects_stand_by_their_length(name: str, addresses: tuple[str, ...] | None) -> None:
    following = build(
        {
            ("hosts", "a"): (claim("app.example.org", addresses=("192.0.2.5",)),),
            ("hosts", "b"): (claim("*.example.org", reach=Reach.ANY_LABELS, addresses=("192.0.2.6",)),),
            ("ingress", "c"): (claim("*.example.org", "c"),),
            ("ingress", "d"): (claim("*.deep.example.org", "d", ingress_class="inner"),),
        }
    )
    assert addresses_of(following.table(), name) == addresses


VERIFY: Final = OwnershipSettings(Mode.VERIFY, zones=("corp.example.org",))


@given(changes, st.integers(1, 3))
def test_following_changes_comes_to_the_load_balancers_of_the_final_claims(
    steps: list[tuple[Key, tuple[Claim, ...]]], slice_size: int
) -> None:
    mixed = Following()
    for number, (key, claims) in enumerate(steps):
        mixed.replace(key, *claims)
        if number % slice_size == 0:
            assert mixed.registry.balancers.replaced == {}
    expected = {point for _, claims in final_state(steps).items() for one in claims for point in one.terms.status}
    # What was in a status before leads here for a while.
    assert mixed.registry.balancers.known.items() >= build(final_state(steps)).registry.balancers.known.items()
    list(mixed.registry.judgements(2 * LINGER))
    assert mixed.registry.balancers == build(final_state(steps)).registry.balancers
    assert set(mixed.registry.balancers.known) == expected


def test_the_load_balancers_are_found_anew_only_after_a_change_of_theirs_or_of_the_targets() -> None:
    """There can be 100,000 claims, and every new table asks."""
    registry = Registry(targets=Targets(("auto",)), guards=GUARDS, ownership=OwnershipSettings(replace=True))
    one = with_terms(claim("app.example.org", ingress_class="nginx"), status=("203.0.113.1",))
    registry.replace("ingress", "app", [one])
    first = registry.balancers
    assert (first.replaced, first.known) == ({}, {})
    registry.replace("ingress", "other", [claim("b.example.org", "other", ingress_class="nginx")])
    assert registry.balancers is first
    registry.set_services({"own/nginx": ("10.96.7.7",)})
    registry.set_steered({"ingressclass/nginx": "own/nginx"})
    assert registry.balancers.replaced == {"203.0.113.1": ("10.96.7.7",)}
    registry.set_services({"own/nginx": ("10.96.7.7",)}, unready=frozenset({"own/nginx"}))
    assert registry.balancers.replaced == {}
    registry.replace("ingress", "app", [])
    assert registry.balancers.known == {}


def test_public_dns_has_a_say_in_the_rows_that_objects_claim() -> None:
    following = Following(ownership=VERIFY)
    following.replace(("ingress", "a"), claim("app.example.org"), claim("*.example.org"), claim("b.corp.example.org"))
    following.replace(("ingress", "b"), claim("empty.example.org", "b", ingress_class="empty"))
    following.replace(("hosts", "c"), claim("own.example.org", addresses=("192.0.2.9",)))
    claimed = {host.hostname: host.claimed for host in following.registry.changes() if host.addresses}
    assert claimed == {
        "app.example.org": Claimed.VERIFIED,
        "*.example.org": Claimed.VERIFIED,
        "b.corp.example.org": Claimed.NO,
        "own.example.org": Claimed.NO,
    }


def test_public_dns_loses_its_say_when_the_operator_takes_a_name_and_has_it_again_after() -> None:
    following = Following(ownership=VERIFY)
    following.replace(("ingress", "a"), claim("app.example.org"))
    found = []
    for addresses in ((), ("192.0.2.9",), ()):
        following.replace(("hosts", "b"), *([claim("app.example.org", addresses=addresses)] if addresses else []))
        found += [(host.claimed, host.addresses) for host in following.registry.changes()]
    objects = Claimed.VERIFIED, ("192.0.2.1",)
    assert found == [objects, (Claimed.NO, ("192.0.2.9",)), objects]


def test_a_right_counts_from_the_next_judgement_on() -> None:
    registry = Registry(targets=TARGETS, guards=GUARDS, rights=Rights())
    registry.replace("ingress", "app", [with_terms(claim("app.example.org"), annotated=True)])
    assert [host.addresses for host in registry.changes()] == [()]
    registry.rights = Rights(namespaces=frozenset({"shop"}))
    assert not list(registry.changes())
    registry.touch(["app.example.org"])
    assert [host.addresses for host in registry.changes()] == [("192.0.2.1",)]
    assert not registry.outcomes.excluded()


def guard(registry: Registry, *search: str) -> bool:
    return registry.set_guarded(search=search, cluster_domains=("cluster.local", "cozy.local"))


def test_the_claims_are_judged_again_when_the_search_domains_change() -> None:
    following = build(
        {
            ("ingress", "a"): (claim("github.com.corp.example.net"), claim("*.example.net", reach=Reach.ANY_LABELS)),
            ("hosts", "b"): (claim("own.corp.example.net", addresses=("192.0.2.5",)),),
        }
    )
    assert addresses_of(following.table(), "github.com.corp.example.net") == ("192.0.2.1",)
    assert guard(following.registry, "corp.example.net")
    closed = following.table()
    assert addresses_of(closed, "github.com.corp.example.net") is None
    assert addresses_of(closed, "other.corp.example.net") is None
    assert addresses_of(closed, "own.corp.example.net") == ("192.0.2.5",)
    assert addresses_of(closed, "other.example.net") == ("192.0.2.1",)
    assert not guard(following.registry, "corp.example.net")
    assert guard(following.registry)
    assert addresses_of(following.table(), "github.com.corp.example.net") == ("192.0.2.1",)
    assert addresses_of(following.table(), "other.corp.example.net") == ("192.0.2.1",)
