from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dnsproxy.operate.decide.decisions import Verdict, decide
from dnsproxy.operate.decide.facts import Facts, Handshake, Point, Probe, Reaction, ServiceName, Subject, SubjectFacts
from tests.dnsproxy.operate.decide.cluster import (
    CLASS,
    HOSTNAME,
    NAME,
    NGINX,
    SERVICE,
    SUCCEEDED,
    VIP,
    cluster,
    probes_of,
    route_of,
)

PROXY = (Point(ip="192.0.2.10", ip_mode="Proxy"),)
SECOND = replace(SERVICE, name=ServiceName("other", "second"))
STEERED = (route_of(),)
FAILED = {NGINX: Handshake(succeeded=True, failures=3)}
MIXED = {(NAME, 80): Probe(Reaction.PLAIN), (NAME, 443): Probe(Reaction.HEADER)}
GATEWAY = SubjectFacts(Subject("web", "infra"), hostnames=1, points=VIP)
V6 = (Point(ip="2001:db8::10"),)

Row = tuple[str, Facts, Verdict, bool, str]
ROWS: Sequence[Row] = [
    ("demands the header, no handshake", cluster(), Verdict.RELAY, False, "missing: a handshake"),
    ("demands the header, handshake", cluster(handshakes={NGINX: SUCCEEDED}), Verdict.RELAY, True, "succeeded"),
    ("takes plain", cluster(probes=probes_of(Reaction.PLAIN)), Verdict.NOTHING, False, "plain"),
    (
        "takes plain now, steered",
        cluster(probes=probes_of(Reaction.PLAIN), routes=STEERED),
        Verdict.NOTHING,
        False,
        "plain",
    ),
    ("not probed", cluster(probes={}), Verdict.LEAVE_ALONE, False, "inconclusive"),
    ("not probed, steered", cluster(probes={}, routes=STEERED), Verdict.KEEP, False, "last decision stays"),
    ("ports differ", cluster(probes=MIXED), Verdict.LEAVE_ALONE, False, "port 443 demands"),
    ("ports differ, steered", cluster(probes=MIXED, routes=STEERED), Verdict.KEEP, False, "port 80 takes"),
    (
        "steered, two failures",
        cluster(routes=STEERED, handshakes={NGINX: Handshake(failures=2)}),
        Verdict.RELAY,
        True,
        "2",
    ),
    ("steered, three failures", cluster(routes=STEERED, handshakes=FAILED), Verdict.RELAY, False, "3 handshakes"),
    (
        "unknown, three failures",
        cluster(probes={}, routes=STEERED, handshakes=FAILED),
        Verdict.LEAVE_ALONE,
        False,
        "inc",
    ),
    ("steered, restart without handshakes", cluster(routes=STEERED), Verdict.RELAY, True, "missing"),
    (
        "listens, one failure",
        cluster(handshakes={NGINX: Handshake(succeeded=True, failures=1)}),
        Verdict.RELAY,
        False,
        "1",
    ),
    ("hostname in its status", cluster(replace(CLASS, points=HOSTNAME)), Verdict.NOTHING, False, "hostnames"),
    (
        "became a hostname",
        cluster(replace(CLASS, points=HOSTNAME), routes=STEERED),
        Verdict.NOTHING,
        False,
        "hostnames",
    ),
    (
        "Service has a hostname",
        cluster(replace(CLASS, backend=str(NAME)), replace(SERVICE, points=HOSTNAME)),
        Verdict.NOTHING,
        False,
        "hostnames",
    ),
    (
        "Proxy honoured",
        cluster(service=replace(SERVICE, points=PROXY), honours_ip_mode=True),
        Verdict.NOTHING,
        False,
        "ipMode",
    ),
    (
        "Proxy not honoured",
        cluster(service=replace(SERVICE, points=PROXY), honours_ip_mode=False),
        Verdict.RELAY,
        False,
        "demands",
    ),
    (
        "Proxy, plane unknown",
        cluster(service=replace(SERVICE, points=PROXY)),
        Verdict.LEAVE_ALONE,
        False,
        "nobody knows",
    ),
    (
        "one of two Proxy",
        cluster(service=replace(SERVICE, points=(*PROXY, *V6)), honours_ip_mode=True),
        Verdict.RELAY,
        False,
        "demands",
    ),
    ("no hostnames", cluster(replace(CLASS, hostnames=0), routes=STEERED), Verdict.LEAVE_ALONE, False, "no hostnames"),
    ("no status", cluster(replace(CLASS, points=())), Verdict.LEAVE_ALONE, False, "annotate"),
    ("no status, steered", cluster(replace(CLASS, points=()), routes=STEERED), Verdict.KEEP, False, "annotate"),
    ("two candidates", cluster(services=(SERVICE, SECOND)), Verdict.LEAVE_ALONE, False, f"{NAME} and other/second"),
    ("annotated nowhere", cluster(replace(CLASS, backend="no/where")), Verdict.LEAVE_ALONE, False, "no such Service"),
    ("annotated badly", cluster(replace(CLASS, backend="???")), Verdict.LEAVE_ALONE, False, "no such Service"),
    (
        "annotated, two candidates",
        cluster(
            replace(CLASS, backend="other/second"),
            services=(SERVICE, SECOND),
            probes=probes_of(Reaction.PLAIN, SECOND.name),
        ),
        Verdict.NOTHING,
        False,
        "names other/second",
    ),
    (
        "owner's pods",
        cluster(replace(CLASS, points=(), owner_namespace="ingress-nginx", owner_labels=(("app", "nginx"),))),
        Verdict.RELAY,
        False,
        "selects the pods",
    ),
    (
        "owner in another namespace",
        cluster(replace(CLASS, points=(), owner_namespace="else", owner_labels=(("app", "nginx"),))),
        Verdict.LEAVE_ALONE,
        False,
        "annotate",
    ),
    ("no TCP port", cluster(service=replace(SERVICE, ports=())), Verdict.LEAVE_ALONE, False, "no TCP port"),
    ("NodePort", cluster(service=replace(SERVICE, type="NodePort")), Verdict.LEAVE_ALONE, False, "annotate"),
    ("status is garbage", cluster(replace(CLASS, points=(Point(ip="::x"),))), Verdict.LEAVE_ALONE, False, "annotate"),
    ("IPv6 only", cluster(replace(CLASS, points=V6), replace(SERVICE, points=V6)), Verdict.RELAY, False, "address"),
    (
        "IPv6 in another spelling",
        cluster(replace(CLASS, points=(Point(ip="2001:DB8:0::10"),)), replace(SERVICE, points=V6)),
        Verdict.RELAY,
        False,
        "address",
    ),
    ("Gateway", cluster(GATEWAY, handshakes={GATEWAY.subject: SUCCEEDED}), Verdict.RELAY, True, "succeeded"),
    (
        "our own relay",
        cluster(service=replace(SERVICE, name=ServiceName("switchback", "x"), selector=(("app", "relay"),))),
        Verdict.LEAVE_ALONE,
        False,
        "our own relay",
    ),
]


@pytest.mark.parametrize(
    ("facts", "verdict", "steer", "evidence"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_facts_give_a_decision_with_its_evidence(facts: Facts, verdict: Verdict, steer: bool, evidence: str) -> None:
    """Each row of the design's table, and its neighbours."""
    (decision,) = decide(facts)
    assert (decision.verdict, decision.steer) == (verdict, steer)
    assert evidence in " | ".join(decision.evidence)


def test_two_subjects_may_share_one_service() -> None:
    """Each is decided by its own handshake."""
    facts = cluster(subjects=(CLASS, GATEWAY), handshakes={NGINX: SUCCEEDED})
    assert {str(one.subject): one.steer for one in decide(facts)} == {
        "gateway/infra/web": False,
        "ingressclass/nginx": True,
    }
