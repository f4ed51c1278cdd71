"""Claimed subjects: which hostnames count for a class or Gateway, and that additions, counts and replicas agree."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin.subjects_document import format_subjects, parse_subjects
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames import claimed_subjects, outcomes
from dnsproxy.hostnames.claimed_subjects import ClaimedSubject, ClaimedSubjects
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.wildcards import reach_in_dns, reach_in_ingress
from tests.dnsproxy.hostnames.test_claimed_zones import finish, settle
from tests.kit.rows import failing

AUTO: Final = Targets(default=("auto",), by_class={"fixed": ("192.0.2.7",), "own": ("status",)})
GUARDS: Final = Guards(deny=("denied.example.org",), search=("corp.example.com",))
RIGHTS: Final = Rights(classes=frozenset({"nginx", "other", "fixed", "own"}))
OLD, NEW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
NGINX, OTHER, GATE = "ingressclass/nginx", "ingressclass/other", "gateway/infra/gate"
HOST: Final = "app.example.org"


def ingress(
    hostname: str = HOST,
    ingress_class: str | None = "nginx",
    *,
    namespace: str = "shop",
    created: str = OLD,
    status: tuple[str, ...] = (),
    target: str | None = None,
    annotated: bool = False,
) -> Claim:
    return Claim(
        hostname,
        reach_in_ingress(hostname),
        Origin("Ingress", hostname, namespace, created),
        Terms(ingress_class=ingress_class, status=status, target=target, annotated=annotated),
    )


def route(
    hostname: str = HOST,
    gateway: str = "infra/gate",
    *,
    namespace: str = "shop",
    created: str = OLD,
    accepted: bool = True,
    status: tuple[str, ...] = (),
) -> Claim:
    origin = Origin("HTTPRoute", hostname, namespace, created)
    reach = reach_in_dns(hostname)
    return Claim(
        hostname, reach, origin, Terms(ingress_class="envoy", gateway=gateway, accepted=accepted, status=status)
    )  # fmt: skip


def static(hostname: str = HOST) -> Claim:
    return Claim(hostname, reach_in_dns(hostname), Origin("hosts file", "names:1"), Terms(("192.0.2.9",)))


def service(hostname: str = HOST) -> Claim:
    return Claim(hostname, Reach.NAME, Origin("Service", "git", "shop", OLD), Terms(annotated=False))


def put(registry: Registry, *claims: Claim) -> None:
    for one in claims:
        registry.replace(one.origin.kind, f"{one.origin.namespace}/{one.origin.name}/{one.terms.ingress_class}", [one])
    settle(registry)


def drop(registry: Registry, one: Claim) -> None:
    registry.replace(one.origin.kind, f"{one.origin.namespace}/{one.origin.name}/{one.terms.ingress_class}", [])
    settle(registry)


def registry_of(*claims: Claim, targets: Targets = AUTO, hold: float = 0) -> Registry:
    registry = Registry(targets=targets, guards=GUARDS, rights=RIGHTS, holds=Holds(hold))
    registry.holds.begin()
    put(registry, *claims)
    return registry


def steer(registry: Registry, *subjects: str, ready: bool = True, addresses: tuple[str, ...] = ("10.96.0.1",)) -> None:
    unready = frozenset() if ready else frozenset(f"own/{one.rpartition('/')[2]}" for one in subjects)
    services = {f"own/{one.rpartition('/')[2]}": addresses for one in subjects}
    registry.set_services(services, unready=unready)
    registry.set_steered({one: f"own/{one.rpartition('/')[2]}" for one in subjects})
    settle(registry)


def counted(registry: Registry) -> ClaimedSubjects:
    claimed = ClaimedSubjects(registry)
    finish(claimed.count())
    return claimed


def numbers(registry: Registry) -> dict[str, int]:
    return {one.subject: one.hostnames for one in counted(registry).subjects()}


@pytest.mark.parametrize(
    ("made", "subject"),
    [
        pytest.param(ingress(), NGINX, id="an Ingress of a class"),
        pytest.param(route(), GATE, id="a route of a Gateway"),
        pytest.param(ingress("*.example.org"), NGINX, id="a wildcard of an Ingress"),
        pytest.param(route("*.example.org"), GATE, id="a wildcard of a route"),
        pytest.param(ingress(ingress_class="new", status=("192.0.2.1",)), "ingressclass/new", id="by its status"),
        pytest.param(ingress(ingress_class=None), None, id="an Ingress without a class"),
        pytest.param(ingress(ingress_class="fixed"), None, id="a class with an address as its target"),
        pytest.param(ingress(ingress_class="own", status=("192.0.2.1",)), None, id="a class with the target status"),
        pytest.param(ingress(target="192.0.2.3"), None, id="a target of its own"),
        pytest.param(static(), None, id="a static name"),
        pytest.param(service(), None, id="a Service"),
        pytest.param(ingress("denied.example.org"), None, id="denied by name"),
        pytest.param(ingress("github.com.corp.example.com"), None, id="in a search domain"),
        pytest.param(ingress("*.github.io"), None, id="a public suffix"),
        pytest.param(ingress("a.svc.cluster.local"), None, id="in the cluster domain"),
        pytest.param(ingress(ingress_class="nobody"), None, id="a class that nobody serves"),
        pytest.param(ingress(annotated=True), None, id="an annotation without the right"),
        pytest.param(route(accepted=False), None, id="a Gateway that no controller has accepted"),
        pytest.param(ingress(ingress_class="Not A Name", status=("192.0.2.1",)), None, id="a class that is no name"),
        pytest.param(ingress(ingress_class="a,b", status=("192.0.2.1",)), None, id="a class with a comma"),
    ],
)  # fmt: skip
def test_a_hostname_counts_while_auto_decides_and_nothing_denies_it(made: Claim, subject: str | None) -> None:
    def check(state: str) -> None:
        registry = registry_of() if state == "added" else registry_of(made)
        if state != "unsteered":
            addresses = () if state == "without an address" else ("10.96.0.1",)
            steer(registry, NGINX, GATE, "ingressclass/new", ready=state != "not ready", addresses=addresses)
        claimed = counted(registry)
        if state == "added":
            put(registry, made)
            assert finish(claimed.add_fresh())
        expected = [(subject, 1, (made.hostname,))] if subject else []
        assert [(one.subject, one.hostnames, one.examples) for one in claimed.subjects()] == expected

    assert failing(check, ["unsteered", "steered", "not ready", "without an address", "added"]) == []


@pytest.mark.parametrize("target", [("192.0.2.1",), ("service:own/relay",), ("status",), ()], ids=str)
def test_without_auto_there_is_none(target: tuple[str, ...]) -> None:
    registry = registry_of(ingress(), route(), targets=Targets(target))
    claimed = counted(registry)
    put(registry, ingress("b.example.org"))
    assert finish(claimed.add_fresh())
    assert (claimed.subjects(), claimed.left_out) == ((), 0)


def test_auto_for_one_class_alone_decides_for_that_class_alone() -> None:
    registry = registry_of(ingress(), ingress("b.example.org", "other"), targets=Targets((), {"other": ("auto",)}))
    assert numbers(registry) == {OTHER: 1}


@pytest.mark.parametrize(
    ("claims", "steered", "expected"),
    [
        pytest.param([ingress(), static()], [], {}, id="a static name wins"),
        pytest.param([ingress(created=NEW), ingress(ingress_class="fixed")], [], {}, id="an older one has an address"),
        pytest.param([ingress(), ingress(ingress_class="fixed", created=NEW)], [], {NGINX: 1}, id="it is the older"),
        pytest.param([ingress(), ingress(ingress_class="other", created=NEW)], [], {NGINX: 1, OTHER: 1},
                     id="the first that is steered would have it"),
        pytest.param([ingress(), ingress(ingress_class="other", created=NEW)], [OTHER], {NGINX: 1, OTHER: 1},
                     id="the younger one has it until the older one is steered"),
        pytest.param([ingress(), ingress(ingress_class="other", created=NEW)], [NGINX], {NGINX: 1},
                     id="the older one has it"),
        pytest.param([ingress(), ingress("*.example.org", "other")], [], {NGINX: 1, OTHER: 1}, id="two names"),
        pytest.param([ingress("*.a.example.org"), route("*.a.example.org")], [NGINX, GATE], {NGINX: 1, GATE: 1},
                     id="wildcards of different reach"),
        pytest.param([ingress(), ingress(namespace="b", created=NEW)], [], {NGINX: 1}, id="two of one class"),
    ],
)  # fmt: skip
def test_a_subject_counts_the_names_that_it_has_or_would_have(
    claims: list[Claim], steered: list[str], expected: dict[str, int]
) -> None:
    registry = registry_of(*claims)
    if steered:
        steer(registry, *steered)
    assert numbers(registry) == expected


def test_a_name_that_stays_with_its_namespace_counts_there_and_for_the_claim_that_waits() -> None:
    """Where the holder's class is let go of, its name must not go to the other namespace for that."""
    holder, older = ingress(created=NEW), ingress(ingress_class="other", namespace="another")
    registry = registry_of(holder, hold=600)
    steer(registry, NGINX)
    put(registry, older)
    steer(registry, NGINX, OTHER)
    assert registry.verdict(HOST, Reach.NAME).winner == holder
    assert numbers(registry) == {NGINX: 1, OTHER: 1}
    steer(registry, OTHER)
    assert numbers(registry) == {NGINX: 1, OTHER: 1}


def test_a_static_name_leaves_nothing_to_the_namespace_that_had_the_name() -> None:
    registry = registry_of(ingress(), hold=600)
    steer(registry, NGINX)
    assert numbers(registry) == {NGINX: 1}
    put(registry, static())
    assert numbers(registry) == {}


def test_another_class_of_the_same_namespace_counts_while_it_stands_in() -> None:
    first, second = ingress(), ingress(ingress_class="other", created=NEW)
    registry = registry_of(first, second)
    registry.set_services({"own/nginx": ("10.96.0.1",), "own/other": ("10.96.0.2",)}, unready=frozenset({"own/nginx"}))
    registry.set_steered({NGINX: "own/nginx", OTHER: "own/other"})
    settle(registry)
    assert registry.verdict(HOST, Reach.NAME).winner == second
    assert numbers(registry) == {NGINX: 1, OTHER: 1}


def test_examples_are_names_before_wildcards_and_stay_while_others_come() -> None:
    registry = registry_of(*(ingress(f"{name}.example.org") for name in "hgfedc"), ingress("*.a.example.org"))
    (subject,) = counted(registry).subjects()
    assert (subject.hostnames, subject.examples) == (7, tuple(f"{name}.example.org" for name in "cdefg"))
    put(registry, *(ingress(f"x{number}.example.org") for number in range(20)))
    assert counted(registry).subjects()[0].examples == subject.examples
    few = registry_of(ingress("*.a.example.org"), ingress("z.example.org"))
    assert counted(few).subjects()[0].examples == ("z.example.org", "*.a.example.org")


def test_the_load_balancers_of_all_objects_are_there_once_and_new_ones_at_once() -> None:
    registry = registry_of(
        ingress(status=("192.0.2.10", "lb.example.org")), ingress("b.example.org", status=("192.0.2.10",))
    )
    claimed = counted(registry)
    assert claimed.subjects()[0].status == ("192.0.2.10", "lb.example.org")
    put(registry, ingress(status=("192.0.2.11",)))
    assert finish(claimed.add_fresh())
    assert claimed.subjects()[0].status == ("192.0.2.10", "192.0.2.11", "lb.example.org")
    finish(claimed.count())
    assert claimed.subjects()[0].status == ("192.0.2.10", "192.0.2.11")


def test_at_most_so_many_load_balancers_are_named_whatever_their_order() -> None:
    points = [f"192.0.2.{number}" for number in range(40)]
    one = registry_of(*(ingress(f"a{number}.example.org", status=(point,)) for number, point in enumerate(points)))
    assert counted(one).subjects()[0].status == tuple(sorted(points)[:16])


def test_a_subject_that_comes_is_added_and_a_name_that_is_judged_twice_counts_once() -> None:
    registry = registry_of(ingress())
    claimed = counted(registry)
    for status in ((), ("192.0.2.1",), ("192.0.2.1", "192.0.2.2")):
        put(registry, route("web.example.org", status=status), route("b.example.org"))
        assert finish(claimed.add_fresh())
    put(registry, ingress("more.example.org"))
    assert finish(claimed.add_fresh())
    gate, nginx = claimed.subjects()
    assert (gate.subject, gate.hostnames, gate.status) == (GATE, 2, ("192.0.2.1", "192.0.2.2"))
    # The number of a known subject waits for the next count.
    assert (nginx.subject, nginx.hostnames) == (NGINX, 1)
    finish(claimed.count())
    assert [one.hostnames for one in claimed.subjects()] == [2, 2]


def test_what_vanished_leaves_with_the_next_count_only() -> None:
    one, other = ingress(), ingress("b.example.org", "other")
    registry = registry_of(one, other)
    claimed = counted(registry)
    drop(registry, one)
    assert finish(claimed.add_fresh())
    assert len(claimed.subjects()) == 2
    finish(claimed.count())
    assert [each.subject for each in claimed.subjects()] == [OTHER]


def test_a_name_that_comes_during_a_count_is_in_the_next_addition() -> None:
    registry = registry_of(ingress(), ingress("b.example.org"))
    claimed = ClaimedSubjects(registry)
    steps = claimed.count()
    next(steps)
    put(registry, route("c.example.org"))
    finish(steps)
    assert finish(claimed.add_fresh())
    assert [one.subject for one in claimed.subjects()] == [GATE, NGINX]


def test_more_fresh_names_than_are_remembered_ask_for_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MOST_FRESH", 2)
    registry = registry_of()
    claimed = counted(registry)
    put(registry, *(ingress(f"{name}.example.org") for name in "abc"))
    assert not finish(claimed.add_fresh())
    assert not finish(claimed.add_fresh())
    finish(claimed.count())
    assert finish(claimed.add_fresh())
    assert claimed.subjects()[0].hostnames == 3


def test_a_tenant_with_many_gateways_pushes_out_none_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimed_subjects, "MOST", 5)
    many = [route(f"a{number}.example.org", f"aa/g{number}") for number in range(9)]
    claimed = counted(registry_of(*many, ingress(), route("b.example.org", "zz/gate")))
    shown = ["gateway/aa/g0", "gateway/aa/g1", "gateway/aa/g2", "gateway/zz/gate", NGINX]
    assert [one.subject for one in claimed.subjects()] == shown
    assert claimed.left_out == 6


HOSTNAMES: Final = ("a.example.org", "b.example.org", "*.example.org", "denied.example.org", "c.example.net")
POINTS: Final = ("192.0.2.1", "2001:db8::1", "lb.example.org", "*.lb.example.org")

claims = st.builds(
    ingress,
    st.sampled_from(HOSTNAMES),
    st.sampled_from(["nginx", "other", "fixed", "own", "nobody", None]),
    namespace=st.sampled_from("ab"),
    created=st.sampled_from([OLD, NEW]),
    status=st.lists(st.sampled_from(POINTS), unique=True).map(tuple),
) | st.builds(
    route,
    st.sampled_from(HOSTNAMES),
    st.sampled_from(["infra/gate", "infra/other"]),
    namespace=st.sampled_from("ab"),
    created=st.sampled_from([OLD, NEW]),
    accepted=st.booleans(),
    status=st.lists(st.sampled_from(POINTS), unique=True).map(tuple),
)


def document(claimed: ClaimedSubjects) -> bytes:
    return format_subjects(claimed.subjects(), left_out=claimed.left_out)[0]


@given(st.lists(claims, max_size=8), st.sets(st.sampled_from([NGINX, OTHER, GATE])), st.randoms())
def test_replicas_with_the_same_names_send_the_same_octets(
    made: list[Claim], steered: set[str], random: object
) -> None:
    """In whatever order the objects came, changed and went."""
    # One object has one state in the end: the last one.
    final = {(one.origin.kind, one.origin.namespace, one.hostname, one.terms.ingress_class): one for one in made}
    one = registry_of(*final.values())
    shuffled = list(final.values())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = registry_of(*made, ingress("gone.example.org"))
    claimed = counted(other)
    drop(other, ingress("gone.example.org"))
    put(other, *shuffled)
    for registry in (one, other):
        steer(registry, *sorted(steered))
    finish(claimed.count())
    octets = document(counted(one))
    assert document(claimed) == octets
    assert parse_subjects(octets).subjects == claimed.subjects()


@given(st.lists(claims, max_size=8), st.lists(claims, max_size=8))
def test_an_addition_names_every_subject_and_load_balancer_that_a_count_would(
    before: list[Claim], after: list[Claim]
) -> None:
    registry = registry_of(*before)
    claimed = counted(registry)
    put(registry, *after)
    assert finish(claimed.add_fresh())
    added = {one.subject: one for one in claimed.subjects()}
    for one in counted(registry).subjects():
        known: ClaimedSubject = added[one.subject]
        assert set(one.status) <= set(known.status)
        assert known.hostnames > 0
