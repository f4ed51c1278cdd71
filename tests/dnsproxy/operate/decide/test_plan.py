"""From decisions to writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace as with_fields

from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.short_circuit import DataPlane
from dnsproxy.operate.decide.decisions import decide
from dnsproxy.operate.decide.facts import Facts, Handshake, ListenPort, Route, Subject, SubjectFacts
from dnsproxy.operate.decide.names import service_name
from dnsproxy.operate.decide.plan import LINGER, PARTING, Create, Delete, Patch, Plan, plan
from tests.dnsproxy.operate.decide.cluster import (
    CLASS,
    GATEWAY,
    HONOURS,
    HOSTNAME,
    IGNORES,
    KEY,
    NGINX,
    PROXY,
    SERVICE,
    SUCCEEDED,
    VIP,
    by_key,
    cluster,
    probes_of,
    route_of,
    service,
)

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
MINE = Route("ssh", "1", relay_to="git/ssh", ports=(ListenPort(22, 20022),))
WEB = SubjectFacts(GATEWAY, hostnames=1, examples=("web.example.org",), status=("192.0.2.10",))
STEERED = (route_of(),)


def planned(facts: Facts, now: datetime = NOW) -> Plan:
    return plan(facts, decide(facts), now=now)


def applied(facts: Facts, now: datetime = NOW) -> Facts:
    """The facts after the writes."""
    routes = {one.name: one for one in facts.routes}
    for change in planned(facts, now).changes:
        match change:
            case Create(route):
                assert route.name not in routes
                routes[route.name] = replace(route, resource_version="1")
            case Patch(before, route):
                assert routes[route.name] == before
                routes[route.name] = replace(route, resource_version=route.resource_version + "1")
            case Delete(route):
                assert routes.pop(route.name) == route
    return replace(facts, routes=tuple(routes.values()))


def test_a_relay_listens_first_and_answers_for_names_after_the_handshake() -> None:
    before = applied(cluster())
    assert [one.subjects for one in before.routes] == [""]
    after = applied(replace(before, handshakes={NGINX: SUCCEEDED}))
    assert [one.subjects for one in after.routes] == ["ingressclass/nginx"]
    assert [one.ports for one in after.routes] == [one.ports for one in before.routes]


def test_the_controllers_of_one_namespace_take_a_part_of_the_relays_ports_and_those_that_exist_come_first() -> None:
    many = tuple(Port(port, f"p{port}") for port in range(1, 101))
    points = [(BalancerAddress(f"203.0.113.{number}"),) for number in range(3)]
    wide = [
        service(f"tenant/wide-{number}", ports=(*many, Port(443, "https")), points=at)
        for number, at in enumerate(points)
    ]
    crowd = tuple(replace(CLASS, subject=Subject(f"wide-{number}"), backend=one.key) for number, one in enumerate(wide))
    facts = cluster(CLASS, SERVICE, *wide, subjects=(*crowd, CLASS))
    first = applied(facts)
    assert {one.name for one in first.routes} == {"relay-nginx", "relay-wide-0", "relay-wide-1"}
    ((subject, fault),) = planned(first).faults
    assert (str(subject), "250 ports for controllers in namespace tenant" in fault) == ("ingressclass/wide-2", True)
    # A subject that comes later by name takes nothing from those that are there.
    earlier = replace(first, subjects=(replace(crowd[2], subject=Subject("a")), *crowd[:2], CLASS))
    assert planned(earlier).changes == ()


def test_three_failures_take_the_names_back_and_the_relay_waits_for_the_next_handshake() -> None:
    steered = applied(applied(cluster(handshakes={NGINX: SUCCEEDED})))
    failing = applied(replace(steered, handshakes={NGINX: Handshake(KEY, succeeded=True, failures=3, headers="v1")}))
    assert [(one.subjects, one.released) for one in failing.routes] == [("", "")]


def test_a_class_that_is_let_go_leaves_a_relay_that_works_after_every_node_knows_what_its_relay_knows() -> None:
    facts = applied(cluster(routes=STEERED, probes=probes_of(mode=HeaderMode.REJECTS)))
    (parting,) = facts.routes
    assert (parting.subjects, parting.released) == ("ingressclass/nginx", "2026-11-25T12:00:00Z")
    assert parting.headers == "v1,80=none,443=none"
    assert planned(facts, NOW + PARTING - timedelta(seconds=1)).changes == ()
    assert planned(facts, NOW + PARTING).changes == (Patch(parting, replace(parting, subjects="")),)


def test_a_class_whose_hostnames_are_gone_leaves_the_relay_at_once() -> None:
    (route,) = applied(cluster(replace(CLASS, hostnames=0), routes=STEERED)).routes
    assert (route.subjects, route.released) == ("", "2026-11-25T12:00:00Z")


def test_a_class_that_is_let_go_keeps_its_relay_for_clients_that_know_its_address() -> None:
    facts = applied(cluster(routes=STEERED, probes=probes_of(mode=HeaderMode.REJECTS)))
    facts = applied(facts, NOW + PARTING)
    (released,) = facts.routes
    assert planned(facts, NOW + LINGER - timedelta(seconds=1)).changes == ()
    assert planned(facts, NOW + LINGER).changes == (Delete(released),)


def test_a_class_that_needs_the_relay_again_is_no_longer_released() -> None:
    facts = applied(cluster(routes=STEERED, probes=probes_of(mode=HeaderMode.REJECTS)))
    (released,) = applied(facts, NOW + PARTING).routes
    (route,) = applied(cluster(routes=(released,), handshakes={NGINX: SUCCEEDED})).routes
    assert (route.subjects, route.released, route.headers) == ("ingressclass/nginx", "", "v1")
    assert route.ports == released.ports


@pytest.mark.parametrize("text", ["yesterday", "2026-11-25", "2999-01-01T00:00:00Z"])
def test_a_time_that_another_wrote_begins_the_wait_anew(text: str) -> None:
    facts = cluster(replace(CLASS, hostnames=0), routes=(route_of(steered=False, released=text),))
    (change,) = planned(facts).changes
    assert isinstance(change, Patch)
    assert change.route.released == "2026-11-25T12:00:00Z"


def test_an_ip_mode_that_appears_leaves_the_header_of_the_relay() -> None:
    proxied = replace(SERVICE, service=with_fields(SERVICE.service, points=PROXY))
    (route,) = applied(applied(cluster(CLASS, proxied, routes=STEERED)), NOW + PARTING).routes
    assert (route.subjects, route.headers) == ("", "v1")


def test_a_name_that_another_has_is_the_fault_of_one_subject() -> None:
    facts = cluster(subjects=(CLASS, WEB), routes=(Route("relay-nginx", "1"),))
    result = planned(facts)
    assert [(str(subject), why) for subject, why in result.faults] == [
        ("ingressclass/nginx", "Service switchback/relay-nginx is there, and we do not manage it; rename it")
    ]
    assert [change.route.name for change in result.changes if isinstance(change, Create)] == [service_name(GATEWAY)]


def test_two_subjects_of_one_service_listen_at_ports_of_their_own() -> None:
    routes = applied(cluster(subjects=(CLASS, WEB))).routes
    assert {one.relay_to for one in routes} == {KEY}
    assert len({port.listen for one in routes for port in one.ports}) == 4


def test_a_pod_that_takes_no_header_is_an_exception() -> None:
    mixed = {
        place: replace(one, mode=HeaderMode.REJECTS, versions=()) if place[2].host == "10.0.0.2" else one
        for place, one in probes_of().items()
    }
    (route,) = applied(cluster(probes=mixed)).routes
    assert (route.headers, route.endpoint_headers) == ("v1", "80@10.0.0.2=none,443@10.0.0.2=none")


def test_no_free_port_is_a_fault() -> None:
    full = replace(MINE, ports=tuple(ListenPort(1, port) for port in range(20_000, 30_000)))
    result = planned(cluster(routes=(full,)))
    assert result.changes == ()
    assert result.faults == ((NGINX, "the relay has no free port to listen on"),)


def test_a_subject_that_an_incomplete_reading_lacks_keeps_its_service() -> None:
    facts = cluster(subjects=(), routes=STEERED, complete=False)
    assert planned(facts).changes == ()
    (change,) = planned(replace(facts, complete=True)).changes
    assert isinstance(change, Patch)
    assert (change.route.subjects, change.route.released) == ("", "2026-11-25T12:00:00Z")


class Sequences(RuleBasedStateMachine):
    """Any order of facts; after each, the writes are made."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = cluster(routes=(MINE,))
        self.now = NOW

    @rule(mode=strategies.sampled_from(HeaderMode), other=strategies.sampled_from(HeaderMode))
    def probe(self, mode: HeaderMode, other: HeaderMode) -> None:
        self.facts = replace(self.facts, probes=probes_of(mode=mode, p80=other))

    @rule(succeeded=strategies.booleans(), failures=strategies.integers(0, 5), to=strategies.sampled_from([KEY, "a/b"]))
    def shake(self, succeeded: bool, failures: int, to: str) -> None:
        self.facts = replace(self.facts, handshakes={NGINX: Handshake(to, succeeded, failures)})

    @rule(points=strategies.sampled_from([VIP, HOSTNAME, (), PROXY]))
    def status(self, points: tuple[BalancerAddress, ...]) -> None:
        service = replace(SERVICE, service=with_fields(SERVICE.service, points=points))
        status = tuple(point.ip or point.hostname for point in points)
        self.facts = replace(self.facts, subjects=(replace(CLASS, status=status),), services=by_key(service))

    @rule(complete=strategies.booleans(), plane=strategies.sampled_from([None, HONOURS, IGNORES]))
    def read(self, complete: bool, plane: DataPlane | None) -> None:
        self.facts = replace(self.facts, complete=complete, plane=plane)

    @rule(subjects=strategies.sampled_from([(), (CLASS,), (CLASS, WEB), (replace(CLASS, hostnames=0),)]))
    def subjects(self, subjects: tuple[SubjectFacts, ...]) -> None:
        self.facts = replace(self.facts, subjects=subjects)

    @rule(seconds=strategies.sampled_from([1, 10, 60, 600]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(name=strategies.sampled_from(["relay-nginx", "mqtt"]), port=strategies.integers(20_000, 29_999))
    def person_writes(self, name: str, port: int) -> None:
        theirs = Route(name, "1", relay_to="mq/mqtt", ports=(ListenPort(1883, port),))
        routes = tuple(one for one in self.facts.routes if one.name != name)
        self.facts = replace(self.facts, routes=(*routes, theirs))

    @rule(
        released=strategies.sampled_from(["", "tomorrow", "2999-01-01T00:00:00Z"]),
        headers=strategies.sampled_from(["v2", "x"]),
    )
    def person_edits_ours(self, released: str, headers: str) -> None:
        edited = (replace(one, released=released, headers=headers) if one.ours else one for one in self.facts.routes)
        self.facts = replace(self.facts, routes=tuple(edited))

    @rule()
    def person_deletes(self) -> None:
        self.facts = replace(self.facts, routes=(MINE,))

    @invariant()
    def writes_settle_and_spare_what_people_wrote(self) -> None:
        theirs = [one for one in self.facts.routes if not one.ours]
        after = applied(self.facts, self.now)
        assert [one for one in after.routes if not one.ours] == theirs
        # The same facts never give two decisions, and what was written gives no write.
        assert planned(after, self.now).changes == ()
        assert [one.steer for one in decide(after)] == [one.steer for one in decide(applied(after, self.now))]
        before = {one.subjects for one in self.facts.routes if one.ours and one.subjects}
        shaken = self.facts.handshakes.get(NGINX, Handshake(KEY))
        newly = {one.subjects for one in after.routes if one.ours and one.subjects} - before
        assert not newly or (shaken.succeeded and not shaken.failures)
        listening = [port.listen for one in after.routes if one.ours for port in one.ports]
        assert len(set(listening)) == len(listening)
        self.facts = after


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)


def test_a_subject_is_known_by_its_whole_name() -> None:
    """`relay-nginx` of another class is not touched when this one goes."""
    other = route_of(Subject("other"))
    after = applied(cluster(subjects=(replace(CLASS, subject=Subject("other")),), routes=(route_of(), other)))
    assert [(one.name, one.subjects) for one in after.routes] == [
        ("relay-nginx", ""),
        ("relay-other", "ingressclass/other"),
    ]
