from __future__ import annotations

from dataclasses import replace

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dnsproxy.operate.decide.decisions import decide
from dnsproxy.operate.decide.facts import Facts, Handshake, Point, Reaction, RoutePort, RouteService, Subject
from dnsproxy.operate.decide.listen_ports import choose_ports
from dnsproxy.operate.decide.names import service_name
from dnsproxy.operate.decide.plan import Create, Delete, Patch, Plan, manifest_of, plan
from tests.dnsproxy.operate.decide.cluster import CLASS, HOSTNAME, NAME, NGINX, SUCCEEDED, VIP, cluster, probes_of

MINE = RouteService("ssh", "1", relay_to="git/ssh", ports=(RoutePort(22, 20022),))


def planned(facts: Facts) -> Plan:
    return plan(facts, decide(facts))


def applied(facts: Facts) -> Facts:
    """The facts after the writes."""
    routes = {one.name: one for one in facts.routes}
    for change in planned(facts).changes:
        match change:
            case Create(route):
                assert route.name not in routes
                routes[route.name] = replace(route, resource_version="1")
            case Patch(route):
                assert routes[route.name].resource_version == route.resource_version
                routes[route.name] = replace(route, resource_version=route.resource_version + "1")
            case Delete(name, version):
                assert routes.pop(name).resource_version == version
    return replace(facts, routes=tuple(routes.values()))


def test_a_relay_listens_first_and_is_named_after_the_handshake() -> None:
    """`for` is written only when a handshake went through."""
    before = applied(cluster())
    assert [one.subjects for one in before.routes] == [()]
    after = applied(replace(before, handshakes={NGINX: SUCCEEDED}))
    assert [one.subjects for one in after.routes] == [("ingressclass/nginx",)]
    assert [one.ports for one in after.routes] == [one.ports for one in before.routes]


def test_three_failures_take_the_names_back_and_leave_the_relay_for_the_next_handshake() -> None:
    """Once let go, it waits for a success."""
    steered = applied(applied(cluster(handshakes={NGINX: SUCCEEDED})))
    failing = applied(replace(steered, handshakes={NGINX: Handshake(succeeded=True, failures=3)}))
    assert [one.subjects for one in failing.routes] == [()]


def test_a_name_that_somebody_else_has_is_the_fault_of_one_subject() -> None:
    """The Service stays as it is; the other subject is served."""
    other = replace(CLASS, subject=Subject("other"))
    facts = cluster(subjects=(CLASS, other), routes=(RouteService("relay-nginx", "1"),))
    result = planned(facts)
    assert [subject for subject, _ in result.faults] == [NGINX]
    assert [change.route.name for change in result.changes if isinstance(change, Create)] == ["relay-other"]


def test_two_subjects_of_one_service_share_the_listening_ports() -> None:
    """Backend, port and header are the same."""
    routes = applied(cluster(subjects=(CLASS, replace(CLASS, subject=Subject("web", "infra"))))).routes
    assert len(routes) == 2
    assert routes[0].ports == routes[1].ports


def test_a_person_who_takes_our_listening_port_gets_it() -> None:
    """Ours moves."""
    first = applied(cluster()).routes[0]
    mine = replace(MINE, ports=(RoutePort(22, first.ports[0].target_port),))
    after = applied(cluster(routes=(first, mine)))
    assert mine in after.routes
    ours = next(one for one in after.routes if one.ours)
    assert ours.ports[0].target_port != first.ports[0].target_port
    assert ours.ports[1] == first.ports[1]


def test_no_port_is_chosen_where_all_are_taken() -> None:
    """A key without a port is left out, and is a fault of its subject."""
    full = RouteService("full", ports=tuple(RoutePort(1, port) for port in range(20_000, 30_000)))
    assert choose_ports({(str(NAME), 80, "v1")}, fixed=[full], ours=[]) == {}
    assert planned(cluster(routes=(replace(full, relay_to="a/b"),))).faults


def test_a_subject_that_a_failed_list_lacks_keeps_its_service() -> None:
    """Only a complete reading shows that a class is gone."""
    facts = replace(applied(cluster()), subjects=(), complete=False)
    assert planned(facts).changes == ()
    assert [type(change) for change in planned(replace(facts, complete=True)).changes] == [Delete]


def test_names_are_labels_and_differ() -> None:
    """Long ones, dotted ones, and a Gateway beside a class of the same name."""
    subjects = [Subject("a"), Subject("a" * 200), Subject("a" * 201), Subject("a.b"), Subject("a-b"), Subject("b", "a")]
    names = [service_name(one) for one in subjects]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 and "." not in name for name in names)
    assert names[0] == "relay-a"


def test_a_manifest_has_what_the_relay_reads() -> None:
    """Label, annotations, ports, and the guard once there is one."""
    route = replace(applied(cluster(handshakes={NGINX: SUCCEEDED})).routes[0], resource_version="9")
    manifest = manifest_of(route, namespace="switchback")
    assert manifest["metadata"]["annotations"] == {
        "switchback.dev/relay-to": str(NAME),
        "switchback.dev/proxy-protocol": "v1",
        "switchback.dev/for": "ingressclass/nginx",
    }
    assert manifest["metadata"]["resourceVersion"] == "9"
    assert [port["port"] for port in manifest["spec"]["ports"]] == [80, 443]


class Sequences(RuleBasedStateMachine):
    """Any order of facts; after each, the writes are made."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = cluster(routes=(MINE,))

    @rule(reaction=strategies.sampled_from(Reaction))
    def probe(self, reaction: Reaction) -> None:
        self.facts = replace(self.facts, probes=probes_of(reaction))

    @rule(succeeded=strategies.booleans(), failures=strategies.integers(0, 5))
    def shake(self, succeeded: bool, failures: int) -> None:
        self.facts = replace(self.facts, handshakes={NGINX: Handshake(succeeded, failures)})

    @rule(points=strategies.sampled_from([VIP, HOSTNAME, (), (Point(ip="192.0.2.10", ip_mode="Proxy"),)]))
    def status(self, points: tuple[Point, ...]) -> None:
        service = replace(self.facts.services[0], points=points)
        self.facts = replace(self.facts, subjects=(replace(CLASS, points=points),), services=(service,))

    @rule(honours=strategies.sampled_from([True, False, None]), complete=strategies.booleans())
    def plane(self, honours: bool | None, complete: bool) -> None:
        self.facts = replace(self.facts, honours_ip_mode=honours, complete=complete)

    @rule(name=strategies.sampled_from(["relay-nginx", "mqtt"]), port=strategies.integers(20_000, 29_999))
    def person_writes(self, name: str, port: int) -> None:
        theirs = RouteService(name, "1", relay_to="mq/mqtt", ports=(RoutePort(1883, port),))
        routes = tuple(one for one in self.facts.routes if one.name != name)
        self.facts = replace(self.facts, routes=(*routes, theirs))

    @rule()
    def person_deletes(self) -> None:
        self.facts = replace(self.facts, routes=(MINE,))

    @invariant()
    def writes_settle_and_spare_what_people_wrote(self) -> None:
        theirs = [one for one in self.facts.routes if not one.ours]
        after = applied(self.facts)
        assert [one for one in after.routes if not one.ours] == theirs
        assert planned(after).changes == ()
        assert decide(after) == decide(self.facts)
        steered = {name for one in self.facts.routes if one.ours for name in one.subjects}
        shaken = self.facts.handshakes.get(NGINX, Handshake())
        newly = {name for one in after.routes if one.ours for name in one.subjects} - steered
        assert not newly or (shaken.succeeded and not shaken.failures)
        self.facts = after


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)
