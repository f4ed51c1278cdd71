"""The verdict: which claim wins (ranking.py), independent of the order of the claims."""

from __future__ import annotations

import dataclasses
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms, with_terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import LedElsewhere, judge

HOST = "app.example.org"
TARGETS = Targets(default=("192.0.2.1",), by_class={"inner": ("192.0.2.2", "2001:db8::2"), "empty": ()})
OLD, NEW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"


def claim(
    name: str, *, created: str = OLD, namespace: str = "shop", ingress_class: str | None = None, kind: str = "Ingress"
) -> Claim:
    return Claim(HOST, Reach.NAME, Origin(kind, name, namespace, created), Terms(ingress_class=ingress_class))


FLAG = Claim(HOST, Reach.NAME, Origin("flag", "--host"), Terms(("192.0.2.8",)))
LINE = Claim(HOST, Reach.NAME, Origin("hosts file", "names:1"), Terms(("192.0.2.9",)))


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        pytest.param(claim("z", created=OLD), claim("a", created=NEW), id="the older"),
        pytest.param(claim("z", namespace="a"), claim("a", namespace="b"), id="of one age, the namespace"),
        pytest.param(claim("a"), claim("b"), id="in one namespace, the name"),
        pytest.param(LINE, claim("a", created=""), id="a static name before the cluster's"),
        pytest.param(FLAG, LINE, id="a flag before a file"),
        pytest.param(
            with_terms(claim("z", kind="Gateway"), routed=False),
            claim("a", created=NEW),
            id="the older, also a mere listener",
        ),
        pytest.param(
            with_terms(claim("z", created=NEW, kind="HTTPRoute"), since=OLD),
            with_terms(claim("a", kind="Gateway"), routed=False),
            id="a route before the listener that it is as old as",
        ),
        pytest.param(
            with_terms(claim("z", created="2026-03-01T00:00:00Z", kind="HTTPRoute"), since=OLD),
            with_terms(claim("a", created=NEW, kind="GRPCRoute"), since=OLD),
            id="of two routes at one listener the older",
        ),
        pytest.param(LINE, with_terms(claim("a"), routed=False), id="a static name before a listener"),
        pytest.param(
            claim("a", ingress_class="inner"), claim("a", ingress_class="other"), id="what differs in its class alone"
        ),
        pytest.param(claim("a", kind="HTTPRoute"), claim("b"), id="of one age, the kind"),
        pytest.param(claim("z", kind="TLSRoute"), claim("a", created=NEW), id="the older, whatever the kinds"),
        pytest.param(claim("a"), with_terms(claim("a"), target="192.0.2.4"), id="its target alone"),
        pytest.param(claim("a"), with_terms(claim("a"), status=("192.0.2.3",)), id="its status alone"),
        pytest.param(
            with_terms(LINE, addresses=("192.0.2.3",)),
            with_terms(LINE, addresses=("192.0.2.4",)),
            id="its addresses alone",
        ),
    ],
)
def test_the_first_by_rank_wins_in_either_order(winner: Claim, loser: Claim) -> None:
    verdict = judge([winner, loser], targets=TARGETS, guards=Guards())
    assert verdict == judge([loser, winner], targets=TARGETS, guards=Guards())
    assert [excluded.claim for excluded in verdict.excluded if excluded.claim != winner] == [loser]
    assert verdict.excluded[-1].reason == f"{winner.origin} has it"


ALIAS: Final = with_terms(claim("alias", namespace="a"), routed=False, ingress_class="nginx")


@pytest.mark.parametrize(
    ("neighbor", "owner"),
    [
        pytest.param(claim("z", created=NEW), "alias", id="a younger rule"),
        pytest.param(claim("z", created=""), "z", id="an older rule"),
        pytest.param(with_terms(ALIAS, ingress_class="other"), "alias", id="its own in another class"),
        pytest.param(claim("z", created="", ingress_class="unserved"), "alias", id="a rule that nobody serves"),
    ],
)
def test_an_additional_hostname_is_ranked_as_any_other(neighbor: Claim, owner: str) -> None:
    rights = Rights(classes=frozenset({"nginx", "other"}), nginx_classes=frozenset({"nginx"}))
    verdict = judge([ALIAS, neighbor], targets=TARGETS, guards=Guards(), rights=rights)
    assert verdict.winner is not None
    assert verdict.winner.origin.name == owner
    assert verdict.winner.terms.ingress_class in (None, "nginx")


def test_a_claim_without_an_address_does_not_keep_the_name_from_one_that_has_one() -> None:
    older, younger = claim("a", ingress_class="empty"), claim("b", ingress_class="inner", created=NEW)
    verdict = judge([older, younger], targets=TARGETS, guards=Guards())
    assert (verdict.winner, verdict.waits) == (younger, False)
    assert [one.reason for one in verdict.excluded] == ["its target has no address (--target)"]


@pytest.mark.parametrize(
    ("ingress_class", "addresses"),
    [
        pytest.param(None, ("192.0.2.1",), id="no class"),
        pytest.param("inner", ("192.0.2.2", "2001:db8::2"), id="a class with a target"),
        pytest.param("other", ("192.0.2.1",), id="a class without a target"),
    ],
)
def test_a_claim_is_answered_with_its_target(ingress_class: str | None, addresses: tuple[str, ...]) -> None:
    wanted = claim("a", ingress_class=ingress_class)
    verdict = judge([wanted], targets=TARGETS, guards=Guards())
    assert (verdict.winner, verdict.addresses, verdict.excluded) == (wanted, addresses, ())


STATUS = ("192.0.2.3", "lb.example.org", "2001:db8::3")


@pytest.mark.parametrize(
    ("target", "addresses"),
    [
        pytest.param("192.0.2.4", ("192.0.2.4",), id="an address"),
        pytest.param("192.0.2.4,2001:db8::4", ("192.0.2.4", "2001:db8::4"), id="two addresses"),
        pytest.param("service:edge/relay", ("192.0.2.5",), id="a Service"),
        pytest.param("status", ("192.0.2.3", "2001:db8::3"), id="the addresses of its status, not the hostname"),
        pytest.param("own", ("192.0.2.3", "2001:db8::3"), id="the addresses of its own"),
    ],
)
def test_the_target_an_object_chose_goes_before_that_of_its_class(target: str, addresses: tuple[str, ...]) -> None:
    chosen = with_terms(claim("a", ingress_class="inner"), target=target, status=STATUS)
    targets = dataclasses.replace(TARGETS, services={"edge/relay": ("192.0.2.5",)})
    assert judge([chosen], targets=targets, guards=Guards()).addresses == addresses


@pytest.mark.parametrize("target", ["service:edge/gone", "service:edge", "status"])
def test_a_chosen_target_without_address_is_named_and_no_other_takes_its_place(target: str) -> None:
    chosen = with_terms(claim("a", ingress_class="inner"), target=target, status=("lb.example.org",))
    verdict = judge(
        [chosen], targets=dataclasses.replace(TARGETS, services={"edge/relay": ("192.0.2.5",)}), guards=Guards()
    )
    assert (verdict.winner, verdict.addresses) == (None, ())
    assert [excluded.reason for excluded in verdict.excluded] == [f"its target has no address ({target})"]


def test_a_static_name_keeps_its_own_addresses() -> None:
    assert judge([FLAG], targets=TARGETS, guards=Guards()).addresses == ("192.0.2.8",)


@pytest.mark.parametrize(
    ("targets", "ingress_class"), [(Targets(), None), (TARGETS, "empty")], ids=["no target", "an empty target"]
)
def test_a_name_whose_target_has_no_address_is_forwarded(targets: Targets, ingress_class: str | None) -> None:
    verdict = judge([claim("a", ingress_class=ingress_class)], targets=targets, guards=Guards())
    assert (verdict.winner, verdict.addresses) == (None, ())
    assert [excluded.reason for excluded in verdict.excluded] == ["its target has no address (--target)"]
    assert verdict.waits


@pytest.mark.parametrize("claims", [(FLAG,), (claim("a"), claim("b")), (FLAG, LINE, claim("a"))], ids=len)
def test_a_guarded_name_is_denied_to_every_claim(claims: tuple[Claim, ...]) -> None:
    verdict = judge(claims, targets=TARGETS, guards=Guards(deny=(HOST,)))
    assert (verdict.winner, verdict.addresses, verdict.waits) == (None, (), False)
    assert {excluded.claim for excluded in verdict.excluded} == set(claims)
    assert {excluded.reason for excluded in verdict.excluded} == {"it is denied (--deny)"}


def test_without_claims_there_is_no_winner() -> None:
    verdict = judge([], targets=TARGETS, guards=Guards())
    assert (verdict.winner, verdict.addresses, verdict.excluded) == (None, (), ())


@pytest.mark.parametrize(
    ("answered", "done"), [(False, "that is left as it is"), (True, "it is answered all the same")]
)
def test_a_name_that_leads_elsewhere_says_where_and_what_is_done(answered: bool, done: str) -> None:
    led = LedElsewhere(HOST, claim("a"), ("198.51.100.9", "2001:db8::9"), answered=answered)
    assert led.reason == f"its public record leads elsewhere (198.51.100.9, 2001:db8::9): {done}"


def test_a_whole_top_level_domain_is_for_the_operator_alone() -> None:
    wild = Claim("*.lan", Reach.ONE_LABEL, claim("a").origin)
    static = Claim("*.lan", Reach.ONE_LABEL, FLAG.origin, Terms(("192.0.2.8",)))
    verdict = judge([wild], targets=TARGETS, guards=Guards())
    assert (verdict.winner, "--allow lan" in verdict.excluded[0].reason) == (None, True)
    assert judge([wild, static], targets=TARGETS, guards=Guards()).winner == static
    assert judge([wild], targets=TARGETS, guards=Guards(zones=("lan",))).winner == wild


any_claims = st.builds(
    claim,
    st.sampled_from("ab"),
    created=st.sampled_from(["", OLD, NEW]),
    namespace=st.sampled_from("ab"),
    ingress_class=st.sampled_from([None, "inner", "other", "empty"]),
    kind=st.sampled_from(["Ingress", "HTTPRoute"]),
).flatmap(
    lambda one: st.builds(
        with_terms,
        st.just(one),
        routed=st.booleans(),
        target=st.sampled_from([None, "192.0.2.4", "status"]),
        annotated=st.booleans(),
        declared=st.sampled_from([(), ("192.0.2.3",)]),
        status=st.sampled_from([(), STATUS, ("192.0.2.3",), ("198.51.100.9",)]),
    )
) | st.sampled_from([FLAG, LINE])


@given(st.lists(any_claims, max_size=8).flatmap(lambda claims: st.tuples(st.just(claims), st.permutations(claims))))
def test_the_verdict_depends_on_the_set_of_claims_alone(orders: tuple[list[Claim], list[Claim]]) -> None:
    one, other = (judge(claims, targets=TARGETS, guards=Guards()) for claims in orders)
    assert one == other
    named = [excluded.claim for excluded in one.excluded] + ([one.winner] if one.winner else [])
    assert sorted(map(repr, named)) == sorted(map(repr, orders[0]))
