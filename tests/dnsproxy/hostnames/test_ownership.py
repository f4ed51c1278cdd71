"""Ownership: in which rows public DNS has a say, and which load balancers lead here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.dns.addresses import is_address
from dnsproxy.hostnames.claim_store import BalancerKey, ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.ownership import LeavingBalancers, Mode, OwnershipSettings, find_balancers, parse_trust
from dnsproxy.hostnames.targets import OWN, Targets
from dnsproxy.hostnames.wildcards import reach_in_dns
from dnsproxy.replace.balancers import Balancers

HOST: Final = "app.example.org"


def claim(hostname: str = HOST, *, kind: str = "Ingress", **terms: Any) -> Claim:
    return Claim(hostname, reach_in_dns(hostname), Origin(kind, hostname, "shop"), Terms(**terms))


# --- in which rows public DNS has a say ---


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.OFF, Claimed.NO),
        (Mode.WARN, Claimed.REPORTED),
        (Mode.VERIFY, Claimed.VERIFIED),
        (Mode.ENFORCE, Claimed.ENFORCED),
    ],
)
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(claim(ingress_class="nginx"), id="a name"),
        pytest.param(claim("*.example.org"), id="a wildcard"),
        pytest.param(claim(kind="HTTPRoute", gateway="infra/gate"), id="a route"),
        pytest.param(claim(routed=False), id="a listener without a route, or a host of a TLS section"),
        pytest.param(claim(declared=("198.51.100.9",)), id="what its writer declares proves nothing"),
        pytest.param(claim(status=("203.0.113.10",)), id="an object with a status"),
    ],
)
def test_public_dns_has_as_much_to_say_of_a_name_that_an_object_claims_as_the_mode_gives_it(
    mode: Mode, expected: Claimed, made: Claim
) -> None:
    assert OwnershipSettings(mode).claimed(made) is expected


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(claim(addresses=("192.0.2.7",)), id="a static name"),
        pytest.param(claim("*.example.org", addresses=("192.0.2.7",)), id="a static wildcard"),
        pytest.param(claim(annotated=True), id="an annotation, which counts with the operator's right alone"),
        pytest.param(claim(target="192.0.2.9"), id="an object that has chosen its target, in the same right"),
    ],
)
def test_the_owners_word_is_never_asked_about(mode: Mode, made: Claim) -> None:
    assert OwnershipSettings(mode).claimed(made) is Claimed.NO


@pytest.mark.parametrize(
    ("name", "trusted"),
    [("example.org", True), ("a.b.example.org", True), ("*.example.org", True), ("*.a.example.org", True),
     ("anexample.org", False), ("org", False), ("*.org", False), ("example.org.example.com", False)],
)  # fmt: skip
def test_a_name_at_or_below_a_trusted_zone_is_answered_without_a_look(name: str, trusted: bool) -> None:
    settings = OwnershipSettings(Mode.ENFORCE, zones=("example.net", "example.org"))
    assert settings.claimed(claim(name)) is (Claimed.NO if trusted else Claimed.ENFORCED)


def test_a_trusted_network_says_nothing_about_a_name() -> None:
    settings = OwnershipSettings(Mode.VERIFY, networks=(ip_network("203.0.113.0/24"),))
    assert settings.claimed(claim(status=("203.0.113.10",))) is Claimed.VERIFIED


# --- which load balancers lead here ---

OUTER, INNER, RELAY, GATE = "203.0.113.10", "203.0.113.11", "10.96.7.7", "10.96.8.8"
V6: Final = "2001:db8::10"
STEERED: Final = Targets(
    ("auto",),
    services={"switchback/relay": (RELAY,), "switchback/gate": (GATE, "2001:db8::8")},
    steered={"ingressclass/nginx": "switchback/relay", "gateway/infra/gate": "switchback/gate"},
)
REPLACING: Final = OwnershipSettings(Mode.VERIFY, replace=True)
Statuses = Mapping[BalancerKey, list[tuple[str, ...]]]


def balancers_of(settings: OwnershipSettings, statuses: Statuses, targets: Targets) -> Balancers:
    """As find_balancers, with one claim for each place of a status in the list."""
    return find_balancers(settings, {key: Counter(several) for key, several in statuses.items()}, targets)


def test_the_load_balancers_of_a_class_and_of_a_gateway_are_replaced_each_by_its_service() -> None:
    statuses: Statuses = {("", "nginx"): [(OUTER, V6)], ("infra/gate", "envoy"): [(INNER,)]}
    found = balancers_of(REPLACING, statuses, STEERED)
    assert found == Balancers({OUTER: (RELAY,), V6: (RELAY,), INNER: (GATE, "2001:db8::8")})


def test_the_target_of_a_gateway_is_no_word_on_the_names_of_its_routes() -> None:
    """The owner of the Gateway has chosen it, and a tenant attaches a route for any name."""
    one = claim(target="192.0.2.9", target_from="infra", gateway="infra/gate", status=(OUTER,))
    assert OwnershipSettings(Mode.VERIFY).claimed(one) is Claimed.VERIFIED


@pytest.mark.parametrize("targets", [STEERED, Targets(("192.0.2.1",))], ids=["auto", "an address"])
@pytest.mark.parametrize("routes", [1, 3], ids=["fewer than others", "more than others"])
def test_the_load_balancer_of_a_gateway_with_a_target_leads_to_the_rows_of_its_names(
    targets: Targets, routes: int
) -> None:
    store = ClaimStore()
    for number in range(routes):
        its = claim(target="192.0.2.9", target_from="infra", gateway="infra/gate", status=(OUTER,))
        store.replace("HTTPRoute", f"shop/{number}", [its])
    assert find_balancers(REPLACING, store.balancers(), targets) == Balancers({}, {OUTER: ()})
    for number in range(2):
        store.replace("Ingress", f"shop/{number}", [claim(ingress_class="nginx", status=(OUTER, INNER))])
    found = find_balancers(REPLACING, store.balancers(), targets)
    assert found.known[OUTER] == ()
    assert found.replaced == ({OUTER: (RELAY,), INNER: (RELAY,)} if targets is STEERED else {})


def test_every_status_of_a_class_counts() -> None:
    many: list[tuple[str, ...]] = [(f"203.0.113.{number}", f"lb{number}.example.net") for number in range(100)]
    found = balancers_of(REPLACING, {("", "nginx"): many}, STEERED)
    assert set(found.replaced) == {point for status in many for point in status}
    assert set(found.replaced.values()) == {(RELAY,)}


@pytest.mark.parametrize(
    ("key", "targets"),
    [
        pytest.param(("", "other"), STEERED, id="a class that nothing steers"),
        pytest.param(("", None), STEERED, id="no class"),
        pytest.param(("infra/other", "envoy"), STEERED, id="a Gateway that nothing steers"),
        pytest.param(("infra/other", "nginx"), STEERED, id="a Gateway whose class is spelled like a steered one"),
        pytest.param(("", "nginx"), replace(STEERED, unready=frozenset({"switchback/relay"})), id="an unready Service"),
        pytest.param(("", "nginx"), replace(STEERED, services={}), id="a Service without an address"),
    ],
)
def test_what_no_ready_service_answers_for_leads_nowhere_because_pods_could_reach_it(
    key: BalancerKey, targets: Targets
) -> None:
    assert balancers_of(REPLACING, {key: [(OUTER,)]}, targets) == Balancers()


def test_an_address_of_two_classes_is_that_of_the_one_with_the_most_claims() -> None:
    targets = replace(STEERED, steered={"ingressclass/a": "switchback/relay", "ingressclass/b": "switchback/gate"})
    stale: Statuses = {("", "a"): [(OUTER,)] * 3, ("", "b"): [(OUTER,), (INNER,)]}
    found = balancers_of(REPLACING, stale, targets)
    assert found.replaced == {OUTER: (RELAY,), INNER: (GATE, "2001:db8::8")}
    # Both may share a load balancer: a claimed name has what its own class is answered with.
    assert found.known == {OUTER: ()}


@pytest.mark.parametrize(
    "steered",
    [
        pytest.param({"ingressclass/b": "switchback/gate"}, id="let go, because its pods reach it"),
        pytest.param({"ingressclass/a": "edge/absent", "ingressclass/b": "switchback/gate"}, id="without an address"),
    ],
)
def test_an_address_whose_class_nobody_answers_for_is_no_other_ones_that_has_it_too(steered: dict[str, str]) -> None:
    """An Ingress that was edited from `a` to `b` has the address of `a` for a while."""
    stale: Statuses = {("", "a"): [(OUTER,)] * 3, ("", "b"): [(OUTER,), (INNER,)]}
    found = balancers_of(REPLACING, stale, replace(STEERED, steered=steered))
    assert set(found.replaced) == {INNER}


def test_an_address_that_a_service_names_is_nobody_elses_while_that_is_not_ready() -> None:
    targets = replace(
        STEERED,
        steered={"ingressclass/a": "switchback/relay", "ingressclass/b": "switchback/gate"},
        balancers={"ingressclass/a": (OUTER,)},
        unready=frozenset({"switchback/relay"}),
    )
    assert balancers_of(REPLACING, {("", "b"): [(OUTER,)] * 9}, targets).replaced == {}


def test_classes_with_targets_of_their_own_behind_one_load_balancer_have_each_their_own() -> None:
    targets = Targets(("auto",), {"a": ("192.0.2.1",), "b": ("192.0.2.2",)}, steered={"ingressclass/a": "edge/relay"},
                      services={"edge/relay": (RELAY,)}, balancers={"ingressclass/a": (V6,)})  # fmt: skip
    found = balancers_of(REPLACING, {("", "a"): [(OUTER,), (INNER,)], ("", "b"): [(OUTER,)]}, targets)
    assert found == Balancers({}, {OUTER: (), INNER: ("192.0.2.1",)})


def test_the_address_that_a_service_names_is_its_own_whatever_objects_say() -> None:
    targets = replace(
        STEERED,
        steered={"ingressclass/a": "switchback/relay", "ingressclass/b": "switchback/gate"},
        balancers={"ingressclass/a": (OUTER,)},
    )
    found = balancers_of(REPLACING, {("", "b"): [(OUTER,)] * 9}, targets)
    assert found.replaced == {OUTER: (RELAY,)}
    unready = replace(targets, unready=frozenset({"switchback/relay"}))
    assert balancers_of(REPLACING, {}, unready) == Balancers()


def test_an_address_that_left_the_statuses_leads_here_for_ten_minutes_while_its_target_answers() -> None:
    leaving, old, new = LeavingBalancers(), Balancers({OUTER: (RELAY,)}), Balancers({INNER: (RELAY,)})
    assert leaving.keep(old, now=0.0) == old
    both = Balancers({OUTER: (RELAY,), INNER: (RELAY,)})
    assert leaving.keep(new, now=10.0) == both
    assert leaving.keep(new, now=500.0) == both
    assert leaving.due == 610.0
    assert leaving.keep(new, now=610.0) == new


def test_what_only_claimed_names_know_leaves_as_late() -> None:
    leaving = LeavingBalancers()
    leaving.keep(Balancers({}, {OUTER: ("192.0.2.1",), V6: ()}), now=0.0)
    new = Balancers({}, {INNER: ("192.0.2.1",)})
    assert leaving.keep(new, now=1.0) == Balancers({}, {OUTER: ("192.0.2.1",), INNER: ("192.0.2.1",)})
    assert leaving.keep(new, now=601.0) == new


@pytest.mark.parametrize(
    "after", [Balancers(), Balancers({INNER: (GATE,)}), Balancers({}, {OUTER: ()})], ids=["nothing", "another", "known"]
)
def test_an_address_whose_target_answers_for_nothing_more_leads_nowhere_at_once(after: Balancers) -> None:
    leaving = LeavingBalancers()
    leaving.keep(Balancers({OUTER: (RELAY,)}), now=0.0)
    assert leaving.keep(after, now=1.0) == after


def test_an_address_that_comes_back_is_as_new() -> None:
    leaving = LeavingBalancers()
    for now, found in ((0.0, OUTER), (1.0, INNER), (2.0, OUTER)):
        last = leaving.keep(Balancers({found: (RELAY,)}), now=now)
    assert last.replaced == {OUTER: (RELAY,), INNER: (RELAY,)}
    assert leaving.keep(Balancers({OUTER: (RELAY,)}), now=603.0).replaced == {OUTER: (RELAY,)}


def test_a_hostname_in_the_status_of_a_gateway_leads_nowhere() -> None:
    """Its owner may choose it, and a load balancer called `example.com` would take that name's traffic to him."""
    statuses: Statuses = {
        ("infra/gate", "envoy"): [("example.com", INNER)],
        ("infra/other", "envoy"): [("example.net", OUTER)],
        ("", "nginx"): [("lb.example.net",)],
    }
    found = balancers_of(REPLACING, statuses, STEERED)
    assert set(found.replaced) == {INNER, "lb.example.net"}
    assert found.known == {}


@pytest.mark.parametrize(
    ("targets", "addresses"),
    [
        pytest.param(Targets(("192.0.2.1",)), ("192.0.2.1",), id="an address"),
        pytest.param(Targets(("192.0.2.9",), {"nginx": ("192.0.2.1",)}), ("192.0.2.1",), id="the class's own address"),
        pytest.param(
            Targets(("service:edge/relay",), services={"edge/relay": ("192.0.2.1",)}), ("192.0.2.1",), id="a Service"
        ),
        pytest.param(Targets(("service:edge/relay",)), (), id="a Service without an address"),
        pytest.param(Targets(("status",)), (), id="the status, which differs from name to name"),
        pytest.param(Targets(()), (), id="no target"),
    ],
)
def test_what_leads_here_is_told_apart_by_what_its_class_is_answered_with(
    targets: Targets, addresses: tuple[str, ...]
) -> None:
    """Two controllers of one cluster: a name that its record leads to the other one must stay there."""
    assert balancers_of(OwnershipSettings(Mode.VERIFY), {("", "nginx"): [(OUTER,)]}, targets) == Balancers(
        {}, {OUTER: addresses}
    )


def test_without_replace_auto_the_steered_service_is_only_what_the_names_of_its_class_get() -> None:
    found = balancers_of(OwnershipSettings(Mode.VERIFY), {("", "nginx"): [(OUTER,)]}, STEERED)
    assert (found.replaced, set(found.known)) == ({}, {OUTER})


@pytest.mark.parametrize("mode", Mode)
def test_off_knows_no_load_balancer_and_replaces_what_is_steered_all_the_same(mode: Mode) -> None:
    settings = OwnershipSettings(mode, networks=(ip_network("198.51.100.0/24"),), replace=True)
    found = balancers_of(settings, {("", "nginx"): [(OUTER,)], ("", "other"): [(INNER,)]}, STEERED)
    assert found.replaced == {OUTER: (RELAY,)}
    assert found.known == ({} if mode is Mode.OFF else {"198.51.100.0/24": ()})


@pytest.mark.parametrize("text", ["198.51.100.0/24", "198.51.100.1", "2001:db8:1::/48", "2001:db8:1::1"])
def test_a_trusted_network_leads_here(text: str) -> None:
    network = parse_trust(text)
    assert not isinstance(network, str)
    found = balancers_of(OwnershipSettings(Mode.VERIFY, networks=(network,)), {}, STEERED)
    assert found == Balancers({}, {str(ip_network(text)): ()})


def test_a_replacement_that_is_set_wins_over_what_an_object_says() -> None:
    settings = replace(REPLACING, replaced=((OUTER, ("192.0.2.1",)), ("198.51.100.1", ("192.0.2.2",))))
    statuses: Statuses = {("", "nginx"): [(OUTER, INNER)], ("", "other"): [("198.51.100.1",)]}
    found = balancers_of(settings, statuses, STEERED)
    assert found.replaced == {OUTER: ("192.0.2.1",), INNER: (RELAY,), "198.51.100.1": ("192.0.2.2",)}
    alone = balancers_of(OwnershipSettings(Mode.OFF, replaced=settings.replaced), statuses, STEERED)
    assert alone == Balancers(dict(settings.replaced))


def found_in(*claims: Claim) -> Balancers:
    store = ClaimStore()
    for number, one in enumerate(claims):
        store.replace("test", str(number), [one])
    return find_balancers(REPLACING, store.balancers(), STEERED)


@pytest.mark.parametrize(
    ("made", "leads"),
    [
        pytest.param(claim(ingress_class="nginx", status=(OUTER,)), True, id="an Ingress"),
        pytest.param(claim(kind="HTTPRoute", gateway="infra/gate", status=(OUTER,)), True, id="a route of a Gateway"),
        pytest.param(
            claim(kind="HTTPRoute", gateway="infra/gate", status=(OUTER,), accepted=False),
            False,
            id="a Gateway that no controller has accepted",
        ),
        pytest.param(
            claim(kind="Route", ingress_class="nginx", status=(OUTER,)),
            False,
            id="an OpenShift Route chooses its class",
        ),
        pytest.param(claim(ingress_class="nginx", target=OWN, status=(OUTER,)), False, id="the addresses of pods"),
        pytest.param(claim(ingress_class="nginx", declared=(OUTER,)), False, id="what its writer only declares"),
        pytest.param(claim(ingress_class="nginx"), False, id="no status yet"),
    ],
)
def test_a_load_balancer_leads_here_by_the_word_of_its_controller_alone(made: Claim, leads: bool) -> None:
    assert (OUTER in found_in(made).replaced) is leads
    assert found_in(made).known == {}


POINTS: Final = (OUTER, INNER, V6, "lb.example.net", "example.com", "no name at all")
KEYS: Final = (("", "nginx"), ("", "other"), ("", None), ("infra/gate", "envoy"), ("infra/other", "envoy"))
any_statuses = st.dictionaries(
    st.sampled_from(KEYS), st.lists(st.lists(st.sampled_from(POINTS), unique=True).map(tuple), max_size=3)
)
any_settings = st.builds(
    OwnershipSettings,
    st.sampled_from(Mode),
    networks=st.sampled_from([(), (ip_network("198.51.100.0/24"),)]),
    replace=st.booleans(),
    replaced=st.sampled_from([(), ((OUTER, ("192.0.2.1",)),)]),
)


@given(any_statuses, any_settings, st.sampled_from([STEERED, Targets(("192.0.2.1",))]))
def test_replicas_agree_whatever_the_order_and_nobody_but_a_status_or_a_flag_leads_here(
    statuses: Statuses, settings: OwnershipSettings, targets: Targets
) -> None:
    found = balancers_of(settings, statuses, targets)
    other = {key: several[::-1] for key, several in reversed(list(statuses.items()))}
    assert balancers_of(settings, other, targets) == found
    told = {
        point
        for (gateway, _), several in statuses.items()
        for status in several
        for point in status
        if not gateway or is_address(point)
    }
    assert {*found.replaced} <= told | dict(settings.replaced).keys()
    assert {*found.known} <= told | {str(network) for network in settings.networks}
    if settings.mode is not Mode.OFF and targets is not STEERED:
        assert told <= {*found.replaced, *found.known}


# --- --trust ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Example.ORG.", "example.org"),
        (" shop.example.org ", "shop.example.org"),
        ("192.0.2.7", ip_network("192.0.2.7/32")),
        ("192.0.2.0/24", ip_network("192.0.2.0/24")),
        ("2001:db8::/32", ip_network("2001:db8::/32")),
        ("2001:db8::7", ip_network("2001:db8::7/128")),
    ],
)
def test_trust_is_a_zone_or_a_network(text: str, expected: object) -> None:
    assert parse_trust(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", "*", "*.example.org", "-x", "a..b", "192.0.2.300", "192.0.2.7/24", "192.0.2.0/33", "192.0.2.0/", "/24",
     "example.org/24", "0.0.0.0", "192.0.2.1-192.0.2.9", "[2001:db8::1]", "https://example.org", "a b", "\u202e"],
)  # fmt: skip
def test_a_text_that_is_neither_zone_nor_network_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        parse_trust(text)
    assert str(caught.value).isprintable()
