"""Holds: a name stays in its namespace, and passes to another one only after the time, whatever comes and goes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms, with_terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import MOST_RESERVED, Held, Holds
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets

HOST: Final = "app.example.org"
HOLD: Final = 600.0
ROW: Final = HOST, Reach.NAME
RELAY: Final = Targets(("192.0.2.1",), {"empty": ()})


def claim(
    namespace: str, day: int, name: str = "web", *, kind: str = "Ingress", empty: bool = False, balancer: str = ""
) -> Claim:
    """A claim of an object that was created on this day; `empty`: its target has no address."""
    origin = Origin(kind, name, namespace, f"2026-01-{day:02}T00:00:00Z")
    terms = Terms(ingress_class="empty" if empty else None, status=(balancer,) if balancer else ())
    return Claim(HOST, Reach.NAME, origin, terms)


@dataclass
class Played:
    """A registry after its first lists, under the test's clock."""

    registry: Registry = field(
        default_factory=lambda: Registry(targets=RELAY, guards=Guards(), holds=Holds(HOLD)),
    )
    now: float = 1_000_000.0

    def put(self, one: Claim) -> None:
        self.registry.replace(one.origin.kind, f"{one.origin.namespace}/{one.origin.name}", [one])
        self.settle()

    def drop(self, one: Claim) -> None:
        self.registry.replace(one.origin.kind, f"{one.origin.namespace}/{one.origin.name}", [])
        self.settle()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.settle()

    def settle(self) -> None:
        for _ in self.registry.changes(self.now):
            pass

    @property
    def owner(self) -> str:
        """The namespace whose claim is answered; empty if the name is forwarded."""
        winner = self.registry.verdict(*ROW).winner
        return winner.origin.namespace if winner is not None else ""

    @property
    def reasons(self) -> list[str]:
        return [one.reason for one in self.registry.outcomes.excluded_at(ROW)]


def played(*claims: Claim, begun: bool = True) -> Played:
    one = Played()
    for each in claims:
        one.put(each)
    if begun:
        one.registry.holds.begin()
    return one


def restarted(before: Played) -> Played:
    """The same after a restart with a snapshot."""
    after = Played(now=before.now)
    for one in before.registry.store.claims():
        after.registry.replace(one.origin.kind, f"{one.origin.namespace}/{one.origin.name}", [one])
    after.registry.holds.restore(list(before.registry.holds.rows()), now=before.now)
    after.registry.touch([HOST])
    after.settle()
    return after


VICTIM, YOUNGER = claim("shop", 1), claim("thief", 2)


def test_a_claim_of_another_namespace_waits_when_the_winner_goes() -> None:
    game = played(VICTIM, YOUNGER)
    game.drop(VICTIM)
    assert game.owner == ""
    assert game.reasons == ["namespace shop has the name: it waits until 1970-01-12T13:56:40Z (--hold)"]
    game.wait(HOLD - 1)
    assert game.owner == ""
    game.wait(1)
    assert (game.owner, game.reasons) == ("thief", [])


def test_a_claim_of_the_same_namespace_takes_over_at_once() -> None:
    game = played(VICTIM, claim("shop", 9, "other"), YOUNGER)
    game.drop(VICTIM)
    assert game.owner == "shop"
    game.wait(10 * HOLD)
    assert game.owner == "shop"


@pytest.mark.parametrize("gone", [0.0, HOLD - 1], ids=["at once", "just in time"])
def test_a_reinstalled_object_has_its_name_for_good(gone: float) -> None:
    """It is younger now than the claim that lay waiting."""
    game = played(VICTIM, YOUNGER)
    game.drop(VICTIM)
    game.wait(gone)
    game.put(claim("shop", 20))
    for _ in range(3):
        assert game.owner == "shop"
        game.wait(HOLD)


BALANCER: Final = "203.0.113.10"
TWO_PATHS: Final = claim("shop", 1, balancer=BALANCER), claim("team", 2, balancer=BALANCER)
"""Two paths of one host, in two namespaces."""


def test_a_claim_that_changes_no_answer_is_answered_while_it_waits() -> None:
    game = played(*TWO_PATHS)
    game.drop(TWO_PATHS[0])
    assert (game.owner, game.reasons) == ("team", [])
    game.wait(HOLD - 1)
    # The name is still the first namespace's, which has it again if its object comes back in time.
    game.put(claim("shop", 20, balancer=BALANCER))
    assert game.owner == "shop"
    game.drop(claim("shop", 20))
    game.wait(HOLD)
    game.put(claim("shop", 20, balancer=BALANCER))
    assert game.owner == "team"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(claim("team", 2, balancer="203.0.113.99"), id="another balancer"),
        pytest.param(claim("team", 2), id="an unknown balancer"),
        pytest.param(claim("team", 2, balancer=BALANCER, empty=True), id="no address"),
        pytest.param(with_terms(TWO_PATHS[1], target="192.0.2.66"), id="another answer in place of the same balancer"),
    ],
)
def test_a_claim_that_would_change_the_answer_waits_from_the_moment_at_which_it_would(other: Claim) -> None:
    for claims in ([TWO_PATHS[0], other], TWO_PATHS):
        game = played(*claims)
        game.drop(TWO_PATHS[0])
        game.put(other)
        assert game.owner == ""
        game.wait(HOLD)
        assert game.owner == ("" if other.terms.ingress_class else "team")


def test_a_name_that_nobody_claims_is_reserved_for_its_namespace() -> None:
    game = played(VICTIM)
    game.drop(VICTIM)
    game.wait(HOLD / 2)
    game.put(YOUNGER)
    assert game.owner == ""
    game.wait(HOLD / 2)
    assert game.owner == "thief"


def test_after_the_time_a_name_is_free() -> None:
    game = played(VICTIM)
    game.drop(VICTIM)
    game.wait(HOLD)
    game.put(YOUNGER)
    assert game.owner == "thief"
    assert game.registry.holds.due is None


def test_an_older_claim_that_appears_later_waits_while_the_winner_goes_on_answering() -> None:
    game = played(YOUNGER)
    game.put(VICTIM)
    assert game.owner == "thief"
    assert game.reasons == ["namespace thief has the name: it waits until 1970-01-12T13:56:40Z (--hold)"]
    game.wait(HOLD)
    assert (game.owner, game.reasons) == ("shop", ["Ingress shop/web has it"])


def test_a_claim_that_leaves_before_its_time_waits_anew() -> None:
    game = played(YOUNGER)
    game.put(VICTIM)
    game.wait(HOLD - 1)
    game.drop(VICTIM)
    game.put(VICTIM)
    game.wait(HOLD - 1)
    assert game.owner == "thief"


def test_a_claim_without_an_address_takes_no_name_and_gives_it_up_after_the_time() -> None:
    game = played(VICTIM)
    game.put(claim("squatter", 1, "a", empty=True))
    assert game.owner == "shop"
    game.drop(VICTIM)
    game.put(claim("shop", 1, empty=True))
    game.put(YOUNGER)
    assert game.owner == ""
    game.wait(HOLD)
    assert game.owner == "thief"


def test_while_no_target_has_an_address_nothing_changes_hands() -> None:
    """The relay's Service is gone for an hour."""
    game = played(VICTIM, YOUNGER)
    game.drop(VICTIM)
    game.put(claim("shop", 20))
    game.registry._targets = dataclasses.replace(RELAY, default=("service:switchback/relay",))
    game.registry.set_services({})
    game.settle()
    game.wait(6 * HOLD)
    assert (game.owner, game.registry.holds.due) == ("", None)
    game.registry.set_services({"switchback/relay": ("192.0.2.1",)})
    game.settle()
    assert game.owner == "shop"


def test_a_hold_survives_a_restart_with_its_time() -> None:
    game = played(VICTIM, YOUNGER)
    game.drop(VICTIM)
    game.wait(HOLD / 2)
    game = restarted(game)
    assert game.owner == ""
    game.wait(HOLD / 2)
    assert game.owner == "thief"


def test_the_age_of_a_reinstalled_object_survives_a_restart() -> None:
    game = played(VICTIM, YOUNGER)
    game.drop(VICTIM)
    game.put(claim("shop", 20))
    game = restarted(restarted(game))
    for _ in range(3):
        assert game.owner == "shop"
        game.wait(HOLD)


def test_what_happens_while_no_server_runs_waits_too() -> None:
    game = restarted(played(VICTIM))
    game.registry.replace("Ingress", "thief/web", [YOUNGER])
    game.drop(VICTIM)
    assert game.owner == ""
    game = restarted(played(YOUNGER))
    game.put(VICTIM)
    assert game.owner == "thief"


def test_names_whose_holder_the_claims_show_are_not_in_a_snapshot() -> None:
    game = played(VICTIM, YOUNGER)
    assert list(game.registry.holds.rows()) == []
    game.drop(VICTIM)
    (row,) = game.registry.holds.rows()
    assert (row.hostname, row.holder, row.until) == (HOST, VICTIM.origin, game.now + HOLD)
    game.wait(HOLD)
    assert list(game.registry.holds.rows()) == []


def test_a_shorter_hold_after_a_restart_shortens_those_of_the_snapshot() -> None:
    holds = Holds(60)
    holds.restore([Held(HOST, Reach.NAME, VICTIM.origin, 10_000.0)], now=1_000)
    assert holds.due == 1_060
    off = Holds(0)
    off.restore([Held(HOST, Reach.NAME, VICTIM.origin, 10_000.0)], now=1_000)
    assert (off.due, off.tenure(*ROW)) == (None, None)


@pytest.mark.parametrize("order", [(VICTIM, YOUNGER), (YOUNGER, VICTIM)], ids=["older first", "younger first"])
def test_in_the_first_lists_the_rank_alone_decides(order: tuple[Claim, ...]) -> None:
    game = played(*order, begun=False)
    assert game.owner == "shop"
    game.drop(VICTIM)
    assert (game.owner, game.registry.holds.due) == ("thief", None)


def test_a_static_name_never_waits_and_leaves_the_name_where_it_was() -> None:
    game = played(VICTIM, YOUNGER)
    static = Claim(HOST, Reach.NAME, Origin("flag", "--host"), Terms(("192.0.2.9",)))
    game.registry.replace("flag", "--host", [static])
    game.settle()
    assert game.registry.verdict(*ROW).winner == static
    game.drop(VICTIM)
    game.wait(HOLD)
    game.registry.replace("flag", "--host", [])
    game.settle()
    assert game.owner == ""
    game.wait(HOLD)
    assert game.owner == "thief"


LISTENER: Final = with_terms(claim("infra", 1, "main", kind="Gateway"), routed=False, gateway="infra/main")
OLD: Final = LISTENER.origin.created


def route_of(gateway: str, day: int, kind: str = "HTTPRoute", **more: Any) -> Claim:
    return with_terms(claim("shop", day, kind=kind), gateway=gateway, **more)


@pytest.mark.parametrize(
    ("route", "owner"),
    [
        pytest.param(route_of("infra/main", 9, since=OLD), "shop", id="its own"),
        pytest.param(route_of("infra/main", 9, "VirtualService", since=OLD), "shop", id="its own, whatever its kind"),
        pytest.param(route_of("infra/main", 1), "shop", id="a route of the same second"),
        pytest.param(route_of("infra/main", 9), "infra", id="a younger one of another listener"),
        pytest.param(route_of("infra/other", 1, since=OLD), "infra", id="a route of another Gateway"),
        pytest.param(route_of("shop/main", 1, since=OLD), "infra", id="a route of another namespace's Gateway"),
        pytest.param(route_of("", 1, "Route"), "infra", id="a route of another API, with the same class"),
        pytest.param(route_of("infra/main", 1, "ListenerSet", routed=False), "infra", id="a listener"),
        pytest.param(
            route_of("infra/main", 1, "DNSEndpoint", annotated=True), "infra", id="an alias of a route's name"
        ),
        pytest.param(claim("shop", 1, "a", kind="Ingress"), "infra", id="no route"),
    ],
)
def test_a_route_takes_the_name_of_its_listener_at_once(route: Claim, owner: str) -> None:
    game = played(LISTENER)
    game.put(route)
    assert game.owner == owner


def test_no_route_takes_the_name_of_a_listener_without_a_gateway() -> None:
    """Two objects of an API without Gateways have equal, empty texts for one."""
    game = played(with_terms(LISTENER, gateway=""))
    game.put(route_of("", 1))
    assert game.owner == "infra"


ALIAS: Final = with_terms(claim("infra", 1, "alias"), routed=False)


def test_a_rule_takes_no_name_of_an_older_alias_and_waits_for_it_as_for_any_other() -> None:
    """Else a tenant could take the name again and again, and leave it without an answer each time."""
    game = played(ALIAS)
    rule = claim("shop", 9)
    game.put(rule)
    game.drop(rule)
    assert game.owner == "infra"
    game.put(rule)
    game.drop(ALIAS)
    assert game.owner == ""
    game.wait(HOLD)
    assert game.owner == "shop"


def test_each_waiting_namespace_is_news_once() -> None:
    game = played(VICTIM, YOUNGER)
    game.drop(VICTIM)
    game.put(claim("thief", 3, "second"))
    (news,) = game.registry.holds.take_news()
    assert (news.hostname, news.holder, news.rival) == (HOST, VICTIM.origin, YOUNGER.origin)
    assert (news.until, game.registry.holds.contested) == (game.now + HOLD, 1)
    game.wait(HOLD)
    assert (game.registry.holds.take_news(), game.registry.holds.contested) == ([], 0)


def test_a_namespace_that_creates_and_deletes_names_reserves_a_bounded_number() -> None:
    holds = Holds(HOLD)
    holds.begin()
    for number in range(MOST_RESERVED + 5):
        row = f"h{number}.example.org", Reach.NAME
        holds.note(row, winner=YOUNGER.origin, rival=None, claimed=True, now=0)
        holds.note(row, winner=None, rival=None, claimed=False, now=0)
    assert sum(1 for _ in holds.end_due(HOLD)) == MOST_RESERVED
    holds.note(ROW, winner=VICTIM.origin, rival=None, claimed=True, now=HOLD)
    holds.note(ROW, winner=None, rival=None, claimed=False, now=HOLD)
    assert holds.due == 2 * HOLD


def test_an_older_object_of_the_holder_gives_its_age_to_no_other_while_a_rival_comes_first() -> None:
    game = played()
    game.put(claim("thief", 2, "a", kind="HTTPRoute"))
    game.put(claim("shop", 1, "a"))
    game.put(claim("thief", 1, "a"))
    game.wait(HOLD - 1)
    assert game.owner == "thief"
    game.wait(1)
    assert game.owner == "shop"


@dataclass
class Model:
    """One name, in the plainest way."""

    claims: dict[str, Claim] = field(default_factory=dict)
    holder: str = ""
    since: str = ""
    waiting: float | None = None
    before: Any = None
    """The answer and the balancer of the last claim of the holder that went or changed."""

    def change(self, key: str, one: Claim | None) -> None:
        old = self.claims.pop(key, None)
        if old is not None and old != one and old.origin.namespace == self.holder and _answer(old) is not None:
            self.before = _answer(old)
        if one is not None:
            self.claims[key] = one

    def age(self, one: Claim) -> str:
        created = one.origin.created
        return min(created, self.since) if one.origin.namespace == self.holder else created

    def settle(self, now: float) -> str:
        """The namespace that is answered."""
        able = [one for one in self.claims.values() if one.terms.ingress_class != "empty"]
        # Of one age by the tenure, the object that is older itself comes first (ranking.py).
        able.sort(
            key=lambda one: (self.age(one), one.origin.created, one.origin.kind, one.origin.namespace, one.origin.name)
        )
        claimed = any(one.origin.namespace == self.holder for one in self.claims.values())
        own = [one for one in able if one.origin.namespace == self.holder]
        if (able and able[0] in own) or (not able and claimed):
            self.waiting = self.before = None
        elif self.holder:
            self.waiting = now if self.waiting is None else self.waiting
            if now - self.waiting < HOLD:
                lent = bool(able) and able[0].terms.status and _answer(able[0]) == self.before
                return self.holder if own else able[0].origin.namespace if lent else ""
            self.holder = self.since = ""
            self.before = None
        if not able:
            return ""
        if able[0].origin.namespace != self.holder:
            self.holder, self.since, self.waiting = able[0].origin.namespace, able[0].origin.created, None
        self.since = min(self.since, able[0].origin.created)
        return self.holder


OBJECTS: Final = st.builds(
    claim,
    st.sampled_from(["shop", "thief", "third"]),
    st.integers(1, 5),
    st.sampled_from(["a", "b"]),
    kind=st.sampled_from(["Ingress", "HTTPRoute"]),
    empty=st.booleans(),
    balancer=st.sampled_from(["", "203.0.113.1", "203.0.113.2"]),
)


def _answer(one: Claim) -> Any:
    return None if one.terms.ingress_class == "empty" else one.terms.status


class ComingAndGoing(RuleBasedStateMachine):
    """Objects that come, change and go, and time that passes, against the model."""

    def __init__(self) -> None:
        super().__init__()
        self.game = played()
        self.model = Model()
        self.owner = ""

    @rule(one=OBJECTS)
    def put(self, one: Claim) -> None:
        self.game.put(one)
        self.model.change(f"{one.origin}", one)
        self.owner = self.model.settle(self.game.now)

    @rule(one=OBJECTS)
    def drop(self, one: Claim) -> None:
        self.game.drop(one)
        self.model.change(f"{one.origin}", None)
        self.owner = self.model.settle(self.game.now)

    @rule(seconds=st.sampled_from([1.0, HOLD / 2, HOLD - 1, HOLD, 3 * HOLD]))
    def wait(self, seconds: float) -> None:
        self.game.wait(seconds)
        self.owner = self.model.settle(self.game.now)

    @precondition(lambda self: self.owner or self.model.waiting is not None or not self.model.holder)
    @rule()
    def restart(self) -> None:
        self.game = restarted(self.game)
        # A snapshot has no answers.
        self.model.before = None
        self.owner = self.model.settle(self.game.now)

    @invariant()
    def the_same_namespace_is_answered(self) -> None:
        assert self.game.owner == self.owner

    @invariant()
    def nothing_is_left_of_names_without_claims(self) -> None:
        holds = self.game.registry.holds
        if not self.model.claims and not self.model.holder:
            assert (holds.tenure(*ROW), holds.due, holds.contested) == (None, None, 0)


TestComingAndGoing = ComingAndGoing.TestCase


@given(
    st.lists(st.tuples(st.sampled_from(["shop", "thief", "third"]), st.booleans(), st.integers(0, 700)), max_size=12),
    st.dictionaries(st.sampled_from(["shop", "thief", "third"]), st.integers(1, 5), min_size=3),
)
def test_after_the_time_the_verdict_depends_on_the_set_of_claims_alone(
    history: list[tuple[str, bool, int]], days: Mapping[str, int]
) -> None:
    game = played()
    present: set[str] = set()
    for namespace, comes, seconds in history:
        one = claim(namespace, days[namespace])
        (game.put if comes else game.drop)(one)
        (present.add if comes else present.discard)(namespace)
        game.wait(seconds)
    game.wait(HOLD)
    assert game.owner == played(*(claim(one, days[one]) for one in sorted(present))).owner
