"""Which Service is behind a subject."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.operate.decide.controllers import controllers_of, find_controller
from dnsproxy.operate.decide.facts import ServiceFacts, SubjectFacts
from tests.dnsproxy.operate.decide.cluster import CLASS, KEY, SELECTOR, SERVICE, cluster, route_of, service

SECOND = service("other/second")
MQTT = service("other/mqtt", ports=(Port(1883, "mqtt"),))
RELEASE = frozenset({"Helm release ingress-nginx/nginx"})
OWNED = replace(SERVICE, owners=RELEASE)
V6 = (BalancerAddress("2001:db8::10"),)
NONE = replace(CLASS, status=())

Row = tuple[str, SubjectFacts, tuple[ServiceFacts, ...], str | None, str]
ROWS: list[Row] = [
    ("address of its status", CLASS, (SERVICE,), KEY, "has an address of its status"),
    (
        "hostname of its status",
        replace(CLASS, status=("LB.example.org.",)),
        (service(points=(BalancerAddress(hostname="lb.example.org"),)),),
        KEY,
        "status",
    ),
    ("external IP", replace(CLASS, status=("203.0.113.1",)), (service(external_ips=("203.0.113.1",)),), KEY, "status"),
    ("IPv6 in another spelling", replace(CLASS, status=("2001:DB8:0::10",)), (service(points=V6),), KEY, "status"),
    ("two Services", CLASS, (SERVICE, SECOND), None, f"{KEY} and other/second: each has an address"),
    ("an address shared with other ports", CLASS, (SERVICE, MQTT), KEY, "status"),
    ("two Services, one of its owner", replace(CLASS, owners=RELEASE), (OWNED, SECOND), KEY, "status"),
    (
        "no status, its owner",
        replace(NONE, owners=RELEASE),
        (OWNED, MQTT),
        KEY,
        "belongs to Helm release ingress-nginx/nginx",
    ),
    (
        "no status, two of its owner",
        replace(NONE, owners=RELEASE),
        (OWNED, replace(SECOND, owners=RELEASE)),
        None,
        "each belongs to",
    ),
    ("no status, no owner", NONE, (SERVICE,), None, "annotate it with switchback.dev/backend"),
    ("another address", replace(CLASS, status=("198.51.100.1",)), (SERVICE,), None, "annotate it"),
    ("garbage in the status", replace(CLASS, status=("::x",)), (SERVICE,), None, "annotate it"),
    ("annotated", replace(NONE, backend=f" {KEY} "), (SERVICE,), KEY, f"switchback.dev/backend names {KEY}"),
    ("annotated beside an address", replace(CLASS, backend="other/second"), (SERVICE, SECOND), "other/second", "names"),
    ("annotated nowhere", replace(CLASS, backend="no/where"), (SERVICE,), None, "'no/where', and there is no such"),
    ("annotated badly", replace(CLASS, backend="???"), (SERVICE,), None, "'???'"),
    ("annotated, empty", replace(CLASS, backend=""), (SERVICE,), None, "''"),
    (
        "annotated, no load balancer",
        replace(CLASS, backend="a/b"),
        (service("a/b", type="ClusterIP"),),
        None,
        "no Service of type",
    ),
    ("NodePort", CLASS, (service(type="NodePort"),), None, "annotate it"),
    ("our relay, by its pods", CLASS, (service("switchback/x", selector=SELECTOR),), None, "is our own relay"),
    (
        "a Service of our namespace",
        CLASS,
        (service("switchback/x", selector=(("app", "x"),)),),
        "switchback/x",
        "status",
    ),
]


@pytest.mark.parametrize(
    ("one", "services", "key", "evidence"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_service_is_found_by_evidence(
    one: SubjectFacts, services: tuple[ServiceFacts, ...], key: str | None, evidence: str
) -> None:
    found = find_controller(one, cluster(one, *services))
    assert (found.service.key if found.service else None) == key
    assert evidence in found.evidence


def test_a_route_service_is_our_own_relay() -> None:
    own = service("switchback/relay-nginx")
    assert find_controller(CLASS, cluster(CLASS, own, routes=(route_of(),))).service is None


def test_an_external_ip_that_anybody_may_write_counts_only_where_no_status_has_the_address() -> None:
    claims = service("tenant-a/evil", points=(), external_ips=("192.0.2.10",), owners=RELEASE)
    owned = replace(CLASS, owners=RELEASE)
    found = find_controller(owned, cluster(owned, SERVICE, claims))
    assert found.service is not None
    assert found.service.key == KEY


def test_the_service_of_the_last_decision_is_followed_beside_the_one_behind_the_subject() -> None:
    moved = replace(CLASS, backend="other/second")
    facts = cluster(moved, SERVICE, SECOND, routes=(route_of(),))
    assert controllers_of(facts).keys() == {KEY, "other/second"}
    assert controllers_of(replace(facts, routes=(route_of(released="2026-11-01T00:00:00Z"),))).keys() == {
        "other/second"
    }
    assert controllers_of(replace(facts, subjects=(replace(moved, hostnames=0),))) == {}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(service(type="ClusterIP"), id="no load balancer any more"),
        pytest.param(service("switchback/relay-nginx"), id="our own relay"),
    ],
)
def test_a_last_service_that_leads_no_pod_to_a_controller_is_not_followed(last: ServiceFacts) -> None:
    elsewhere = replace(CLASS, status=("198.51.100.1",))
    assert controllers_of(cluster(elsewhere, last, routes=(route_of(to=last.key),))) == {}


def test_of_many_candidates_a_few_are_named() -> None:
    found = find_controller(CLASS, cluster(CLASS, *(service(f"web/s{number:04}") for number in range(3_000))))
    assert found.service is None
    assert "web/s0000 and web/s0001" in found.evidence
    assert len(found.evidence) < 700
