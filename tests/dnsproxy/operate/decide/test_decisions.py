"""From facts to decisions: each row of the design's table, and its neighbours."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.decisions import Verdict, decide
from dnsproxy.operate.decide.facts import Facts, Handshake, ListenPort, Route, SubjectFacts
from dnsproxy.operate.decide.handshaking import due_handshakes
from dnsproxy.operate.decide.plan import Patch, plan
from dnsproxy.operate.decide.probing import due_probes
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
    cluster,
    probes_of,
    route_of,
    service,
)

STEERED = (route_of(),)
LISTENING = (route_of(steered=False),)
PROXIED, NAMED, EMPTY = service(points=PROXY), service(points=HOSTNAME), service(points=())
BOTH = service(points=(*VIP, *HOSTNAME))
V6 = (BalancerAddress("2001:db8::10"),)
WEB = SubjectFacts(GATEWAY, hostnames=1, examples=("web.example.org",), status=("192.0.2.10",))
PLAIN = probes_of(mode=HeaderMode.REJECTS)
THEIRS = Route("mine", "1", relay_to="a/b", subjects="ingressclass/nginx", ports=(ListenPort(443, 9443),))
OTHER = service("elsewhere/other", ports=(Port(8080, "http"),))
OTHER_NAMED = service("elsewhere/named", points=HOSTNAME)
ELSEWHERE = replace(CLASS, status=("198.51.100.1",))
HTTPS = route_of(headers="v1,80=none")
RANGED = service(source_ranges=("203.0.113.0/24",))
SSH = service(ports=(Port(22, "ssh"),))


def failed(count: int) -> dict[object, Handshake]:
    return {NGINX: Handshake(KEY, succeeded=True, failures=count, headers="v1")}


Row = tuple[str, Facts, Verdict, bool, str]
ROWS: list[Row] = [
    ("demands the header, no handshake", cluster(), Verdict.RELAY, False, "no handshake through the relay yet"),
    ("demands the header, no relay Service", cluster(handshakes={NGINX: SUCCEEDED}), Verdict.RELAY, False, "succeeded"),
    (
        "demands the header, handshake",
        cluster(routes=LISTENING, handshakes={NGINX: SUCCEEDED}),
        Verdict.RELAY,
        True,
        "succeeded",
    ),
    (
        "handshake through a Service that was deleted",
        cluster(routes=(route_of(steered=False, uid="2"),), handshakes={NGINX: replace(SUCCEEDED, uid="1")}),
        Verdict.RELAY,
        False,
        "yet",
    ),
    (
        "handshake with another backend",
        cluster(handshakes={NGINX: Handshake("a/b", True)}),
        Verdict.RELAY,
        False,
        "yet",
    ),
    ("its ranges leave pods out", cluster(CLASS, RANGED), Verdict.LEAVE_ALONE, False, "203.0.113.0/24) leave"),
    (
        "its ranges leave pods out, steered",
        cluster(CLASS, RANGED, routes=STEERED, handshakes={NGINX: SUCCEEDED}),
        Verdict.LEAVE_ALONE,
        False,
        "add the pods' addresses",
    ),
    (
        "its ranges leave pods out, and it is named",
        cluster(replace(CLASS, backend=KEY), RANGED),
        Verdict.LEAVE_ALONE,
        False,
        "leave pods out",
    ),
    (
        "its ranges let one pod of the relay in and one not",
        cluster(CLASS, RANGED, relay_endpoints=("203.0.113.7", "10.0.9.1")),
        Verdict.LEAVE_ALONE,
        False,
        "leave pods out",
    ),
    ("its ranges are no network", cluster(CLASS, service(source_ranges=("all",))), Verdict.LEAVE_ALONE, False, "(all)"),
    (
        "its ranges have the pods",
        cluster(CLASS, service(source_ranges=("203.0.113.0/24", "10.0.0.0/8"))),
        Verdict.RELAY,
        False,
        "demands the PROXY header",
    ),
    (
        "its ranges are of the other family",
        cluster(CLASS, service(source_ranges=("2001:db8::/32",))),
        Verdict.RELAY,
        False,
        "demands the PROXY header",
    ),
    (
        "its ranges, without a pod of the relay",
        cluster(CLASS, RANGED, relay_endpoints=()),
        Verdict.LEAVE_ALONE,
        False,
        "shows once the relay has a pod",
    ),
    (
        "its ranges, without a pod of the relay, steered",
        cluster(CLASS, RANGED, relay_endpoints=(), routes=STEERED),
        Verdict.KEEP,
        True,
        "the last decision stays",
    ),
    (
        "its ranges leave pods out, and it takes plain",
        cluster(CLASS, RANGED, probes=PLAIN),
        Verdict.NOTHING,
        False,
        "without the header",
    ),
    ("takes plain", cluster(probes=PLAIN), Verdict.NOTHING, False, "pods reach it without the header"),
    ("takes plain now, steered", cluster(probes=PLAIN, routes=STEERED), Verdict.NOTHING, False, "without the header"),
    ("takes both", cluster(probes=probes_of(mode=HeaderMode.ACCEPTS)), Verdict.NOTHING, False, "without the header"),
    ("not probed", cluster(probes={}), Verdict.LEAVE_ALONE, False, "not probed yet"),
    ("not probed, steered", cluster(probes={}, routes=STEERED), Verdict.KEEP, True, "the last decision stays"),
    (
        "not probed, let go",
        cluster(probes={}, routes=(route_of(steered=False, released="2026-11-01T00:00:00Z"),)),
        Verdict.LEAVE_ALONE,
        False,
        "not probed yet",
    ),
    (
        "one port demands it",
        cluster(probes=probes_of(p80=HeaderMode.REJECTS)),
        Verdict.RELAY,
        False,
        "port 443 demands",
    ),
    ("one port is unclear", cluster(probes=probes_of(p80=HeaderMode.SILENT)), Verdict.RELAY, False, "port 443 demands"),
    (
        "one port plain, one dead",
        cluster(probes=probes_of(mode=HeaderMode.REJECTS, p80=HeaderMode.DEAD)),
        Verdict.NOTHING,
        False,
        "port 80 accepts no connection",
    ),
    ("dead", cluster(probes=probes_of(mode=HeaderMode.DEAD)), Verdict.LEAVE_ALONE, False, "accepts no connection"),
    ("dead, steered", cluster(probes=probes_of(mode=HeaderMode.DEAD), routes=STEERED), Verdict.KEEP, True, "stays"),
    (
        "steered, two failures",
        cluster(routes=STEERED, handshakes=failed(2)),
        Verdict.RELAY,
        True,
        "2 handshakes in a row",
    ),
    ("steered, three failures", cluster(routes=STEERED, handshakes=failed(3)), Verdict.RELAY, False, "3 handshakes"),
    (
        "unknown, three failures",
        cluster(probes={}, routes=STEERED, handshakes=failed(3)),
        Verdict.LEAVE_ALONE,
        False,
        "3 handshakes",
    ),
    ("steered, restart without handshakes", cluster(routes=STEERED), Verdict.RELAY, True, "yet"),
    (
        "listens, one failure",
        cluster(handshakes=failed(1)),
        Verdict.RELAY,
        False,
        "a handshake through the relay failed",
    ),
    ("steered to another Service", cluster(routes=(route_of(to="a/b"),)), Verdict.RELAY, False, "yet"),
    (
        "its status is a hostname",
        cluster(replace(CLASS, status=("lb.example.org",)), NAMED),
        Verdict.NOTHING,
        False,
        "not short",
    ),
    (
        "its status is a hostname of no Service",
        cluster(replace(CLASS, status=("lb.example.org",)), NAMED, OTHER_NAMED),
        Verdict.NOTHING,
        False,
        "only hostnames (lb.example.org): nothing short-circuits them",
    ),
    (
        "its status is a hostname, and some Service has an address",
        cluster(replace(CLASS, status=("lb.example.org",))),
        Verdict.LEAVE_ALONE,
        False,
        "annotate it",
    ),
    (
        "its status is a hostname, and its Service still has the address, steered",
        cluster(replace(CLASS, status=("lb.example.org",)), routes=STEERED),
        Verdict.KEEP,
        True,
        "annotate it",
    ),
    (
        "the Service has a hostname",
        cluster(replace(CLASS, backend=KEY), NAMED, routes=STEERED),
        Verdict.NOTHING,
        False,
        "short",
    ),
    ("the Service has both", cluster(CLASS, BOTH), Verdict.RELAY, False, "demands the PROXY header"),
    (
        "no address yet",
        cluster(replace(CLASS, backend=KEY), EMPTY),
        Verdict.LEAVE_ALONE,
        False,
        "no load balancer address",
    ),
    ("no address, steered", cluster(replace(CLASS, backend=KEY), EMPTY, routes=STEERED), Verdict.KEEP, True, "stays"),
    ("Proxy honoured", cluster(CLASS, PROXIED, routes=STEERED), Verdict.NOTHING, False, "not short-circuited"),
    ("Proxy ignored", cluster(CLASS, PROXIED, plane=IGNORES), Verdict.RELAY, False, "demands the PROXY header"),
    (
        "plane not read",
        cluster(plane=None, why_no_plane="503: x"),
        Verdict.LEAVE_ALONE,
        False,
        "unknown data plane (503: x)",
    ),
    (
        "plane not read, steered",
        cluster(CLASS, SERVICE, plane=None, routes=STEERED, handshakes={NGINX: SUCCEEDED}),
        Verdict.KEEP,
        True,
        "an unknown data plane (not read yet)",
    ),
    (
        "plane not read, hostname",
        cluster(replace(CLASS, backend=KEY), NAMED, plane=None),
        Verdict.NOTHING,
        False,
        "short",
    ),
    ("Proxy, plane unknown", cluster(CLASS, PROXIED, plane=None), Verdict.LEAVE_ALONE, False, "is not known"),
    ("Proxy, plane unknown, steered", cluster(CLASS, PROXIED, plane=None, routes=STEERED), Verdict.KEEP, True, "stays"),
    (
        "Proxy, plane unknown, reached",
        cluster(CLASS, PROXIED, plane=None, balancers={KEY: True}),
        Verdict.NOTHING,
        False,
        "pods reach its load balancer",
    ),
    (
        "Proxy, plane unknown, not reached",
        cluster(CLASS, PROXIED, plane=None, balancers={KEY: False}),
        Verdict.RELAY,
        False,
        "is not answered",
    ),
    ("one of two Proxy", cluster(CLASS, service(points=(*PROXY, *V6)), plane=HONOURS), Verdict.RELAY, False, "demands"),
    (
        "a second candidate, steered",
        cluster(CLASS, SERVICE, OTHER, routes=STEERED),
        Verdict.KEEP,
        True,
        "annotate it",
    ),
    (
        "a second candidate, three failures",
        cluster(CLASS, SERVICE, OTHER, routes=STEERED, handshakes=failed(3)),
        Verdict.LEAVE_ALONE,
        False,
        "3 handshakes",
    ),
    ("no address of its status, steered", cluster(ELSEWHERE, routes=STEERED), Verdict.KEEP, True, "annotate it"),
    (
        "its status is older than the hostname of its Service",
        cluster(CLASS, NAMED, routes=STEERED),
        Verdict.NOTHING,
        False,
        "its status has only hostnames now",
    ),
    (
        "another type",
        cluster(ELSEWHERE, service(type="ClusterIP"), routes=STEERED),
        Verdict.NOTHING,
        False,
        "no Service of type LoadBalancer any more",
    ),
    ("gone", cluster(ELSEWHERE, OTHER, routes=STEERED), Verdict.NOTHING, False, f"Service {KEY} was behind it"),
    (
        "perhaps gone",
        cluster(ELSEWHERE, OTHER, routes=STEERED, complete=False),
        Verdict.KEEP,
        True,
        "annotate it",
    ),
    (
        "one port plain, the steered one dead for a moment",
        cluster(probes=probes_of(p80=HeaderMode.REJECTS, p443=HeaderMode.DEAD), routes=(HTTPS,)),
        Verdict.KEEP,
        True,
        "stays",
    ),
    ("no hostnames", cluster(replace(CLASS, hostnames=0), routes=STEERED), Verdict.LEAVE_ALONE, False, "no hostnames"),
    ("no Service", cluster(replace(CLASS, status=())), Verdict.LEAVE_ALONE, False, "annotate it"),
    ("no Service, steered", cluster(replace(CLASS, status=()), routes=STEERED), Verdict.KEEP, True, "annotate it"),
    ("no web port", cluster(CLASS, SSH), Verdict.LEAVE_ALONE, False, "no port for HTTP or TLS"),
    (
        "no ready endpoint",
        cluster(CLASS, replace(SERVICE, endpoints={})),
        Verdict.LEAVE_ALONE,
        False,
        "no ready endpoint",
    ),
    (
        "endpoints not read",
        cluster(CLASS, replace(SERVICE, endpoints=None)),
        Verdict.LEAVE_ALONE,
        False,
        "no ready endpoint",
    ),
    (
        "IPv6 only",
        cluster(replace(CLASS, status=("2001:db8::10",)), service(points=V6)),
        Verdict.RELAY,
        False,
        "demands",
    ),
    (
        "Gateway",
        cluster(WEB, routes=(route_of(GATEWAY, steered=False),), handshakes={GATEWAY: SUCCEEDED}),
        Verdict.RELAY,
        True,
        "succeeded",
    ),
    (
        "a Service of people answers for it",
        cluster(routes=(THEIRS,)),
        Verdict.LEAVE_ALONE,
        False,
        "switchback/mine, which we do",
    ),
]


@pytest.mark.parametrize(
    ("facts", "verdict", "steer", "evidence"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_facts_give_a_decision_with_its_evidence(facts: Facts, verdict: Verdict, steer: bool, evidence: str) -> None:
    (decision,) = decide(facts)
    assert (decision.verdict, decision.steer) == (verdict, steer)
    assert evidence in " | ".join(decision.evidence)


MODES = HeaderMode
UNKNOWN_443: list[tuple[str, Facts, Verdict, bool, str]] = [
    ("steered", cluster(probes=probes_of(p443=MODES.UNKNOWN), routes=STEERED), Verdict.RELAY, True, "v1"),
    ("steered, hangs", cluster(probes=probes_of(p443=MODES.SILENT), routes=STEERED), Verdict.RELAY, True, "v1"),
    ("new", cluster(probes=probes_of(p443=MODES.UNKNOWN)), Verdict.RELAY, False, "none"),
    (
        "beside a plain port, steered",
        cluster(probes=probes_of(p80=MODES.REJECTS, p443=MODES.UNKNOWN), routes=(HTTPS,)),
        Verdict.KEEP,
        True,
        "v1",
    ),
    (
        "beside a plain port, new",
        cluster(probes=probes_of(p80=MODES.REJECTS, p443=MODES.UNKNOWN)),
        Verdict.LEAVE_ALONE,
        False,
        "none",
    ),
]


@pytest.mark.parametrize(
    ("facts", "verdict", "steer", "header"), [row[1:] for row in UNKNOWN_443], ids=[row[0] for row in UNKNOWN_443]
)
def test_a_web_port_whose_header_is_unknown_keeps_its_header_and_is_reported(
    facts: Facts, verdict: Verdict, steer: bool, header: str
) -> None:
    (decision,) = decide(facts)
    assert (decision.verdict, decision.steer) == (verdict, steer)
    assert {one.port: one.header for one in decision.ports}[443] == header
    assert decision.waits
    assert decision.evidence[-1] == "port 443 does not show yet whether it demands the PROXY header"


MANY = service(ports=(Port(80, "http"), Port(443, "https"), Port(8443, "https-alt")))


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(cluster(routes=STEERED), id="both demand it"),
        pytest.param(cluster(probes=probes_of(p80=MODES.REJECTS), routes=STEERED), id="one takes plain"),
        # Envoy listens at 443 only while a host has a certificate.
        pytest.param(cluster(probes=probes_of(p443=MODES.DEAD), routes=STEERED), id="one accepts no connection"),
        pytest.param(cluster(CLASS, MANY, probes=probes_of(SERVICE), routes=STEERED), id="one is beyond those probed"),
    ],
)
def test_a_class_is_well_whose_ports_all_show_what_they_take(facts: Facts) -> None:
    (decision,) = decide(facts)
    assert (decision.verdict, decision.steer, decision.waits) == (Verdict.RELAY, True, False)


def test_the_port_that_is_unknown_is_told_after_those_of_neighbors() -> None:
    shared = service("git/ssh", ports=(Port(22, "ssh"),))
    facts = cluster(CLASS, SERVICE, shared, probes=probes_of(p80=MODES.SILENT, p443=MODES.REJECTS))
    (decision,) = decide(facts)
    assert "port 22 is that of git/ssh" in " ".join(decision.evidence)
    assert decision.evidence[-1].startswith("port 80 does not show yet")


def test_what_is_missing_is_told_last_and_a_failure_before_it() -> None:
    (decision,) = decide(cluster(CLASS, SERVICE, OTHER, routes=STEERED, handshakes=failed(1)))
    *_, failure, stays, cause = decision.evidence
    assert "a handshake through the relay failed" in failure
    assert stays == "the last decision stays"
    assert "annotate it" in cause


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(cluster(CLASS, SERVICE, OTHER, probes=PLAIN, routes=STEERED), id="two candidates"),
        pytest.param(cluster(ELSEWHERE, SERVICE, probes=PLAIN, routes=STEERED), id="no candidate"),
        pytest.param(cluster(CLASS, PROXIED, plane=None, probes=PLAIN, routes=STEERED), id="a data plane not read"),
        pytest.param(cluster(replace(CLASS, backend=KEY), EMPTY, probes=PLAIN, routes=STEERED), id="no address"),
    ],
)
def test_the_relay_follows_the_controller_of_a_kept_decision(facts: Facts) -> None:
    """A controller that takes no header any more would refuse what its relay sends."""
    (decision,) = decide(facts)
    assert decision.verdict is Verdict.KEEP
    (patch,) = plan(facts, [decision], now=datetime.now(UTC)).changes
    assert isinstance(patch, Patch)
    assert (patch.route.headers, patch.route.subjects) == ("v1,80=none,443=none", "ingressclass/nginx")
    assert {one.place[0] for one in due_probes(facts, {}, now=0)} == {KEY}


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(cluster(CLASS, SERVICE, OTHER, routes=STEERED), id="two candidates"),
        pytest.param(cluster(ELSEWHERE, SERVICE, routes=STEERED), id="no candidate"),
        pytest.param(cluster(CLASS, PROXIED, plane=None, routes=STEERED), id="a data plane not read"),
    ],
)
def test_handshakes_go_on_for_a_kept_decision(facts: Facts) -> None:
    (made,) = due_handshakes(facts, decide(facts), {}, now=0)
    assert (made.relay_to, [one.port for one in made.ports]) == (KEY, [80, 443])


def test_two_subjects_may_share_one_service() -> None:
    facts = cluster(subjects=(CLASS, WEB), routes=LISTENING, handshakes={NGINX: SUCCEEDED})
    assert {str(one.subject): one.steer for one in decide(facts)} == {
        "gateway/infra/web": False,
        "ingressclass/nginx": True,
    }


def test_one_subject_without_a_service_leaves_the_others_alone() -> None:
    lost = replace(WEB, status=("198.51.100.7",))
    verdicts = {str(one.subject): one.verdict for one in decide(cluster(subjects=(lost, CLASS)))}
    assert verdicts == {"gateway/infra/web": Verdict.LEAVE_ALONE, "ingressclass/nginx": Verdict.RELAY}


POINTS = st.sampled_from([VIP, PROXY, HOSTNAME, (), (*VIP, *HOSTNAME)])
FACTS = st.builds(
    lambda points, mode, plane, routes, shake, complete, reached: cluster(
        CLASS,
        replace(SERVICE, service=with_fields(SERVICE.service, points=points)),
        probes=probes_of(mode=mode) if mode is not None else {},
        plane=plane,
        routes=routes,
        handshakes={NGINX: shake},
        complete=complete,
        balancers={} if reached is None else {KEY: reached},
    ),
    POINTS,
    st.none() | st.sampled_from(HeaderMode),
    st.sampled_from([None, HONOURS, IGNORES]),
    st.sampled_from([(), STEERED, (route_of(steered=False),), (THEIRS,)]),
    st.builds(
        Handshake, st.just(KEY), st.booleans(), st.integers(0, 4), headers=st.sampled_from(["v1", "v1,443=none"])
    ),
    st.booleans(),
    st.none() | st.booleans(),
)


@given(FACTS)
def test_nothing_is_steered_without_a_demand_and_a_handshake_or_an_earlier_decision(facts: Facts) -> None:
    (decision,) = decide(facts)
    was_steered = facts.routes == STEERED
    shake = facts.handshakes[NGINX]
    if decision.steer and not was_steered:
        assert decision.verdict is Verdict.RELAY
        assert shake.succeeded
        assert shake.headers == facts.routes[0].headers
        assert not shake.failures
    if decision.steer:
        assert decision.verdict in {Verdict.RELAY, Verdict.KEEP}
        assert shake.failures < 3 or shake.headers != facts.routes[0].headers
    if decision.verdict is Verdict.KEEP:
        assert facts.routes in (STEERED, (route_of(steered=False),))
