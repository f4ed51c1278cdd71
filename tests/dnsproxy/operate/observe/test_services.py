"""What is kept of the Services of a cluster."""

from __future__ import annotations

from dnsproxy.operate.decide.facts import Route, SubjectFacts
from dnsproxy.operate.observe.services import KeptService, service_facts
from tests.dnsproxy.operate.decide.cluster import CLASS, KEY, NGINX, SERVICE

PLAIN = KeptService(frozenset([80]), type="ClusterIP")
SERVICES = {KEY: KeptService(frozenset([80, 443]), "LoadBalancer", SERVICE), "web/plain": PLAIN, "web/other": PLAIN}


def test_the_facts_are_the_load_balancers() -> None:
    assert service_facts(SERVICES, (), (CLASS,)) == {KEY: SERVICE}


def test_of_what_a_route_or_an_annotation_names_the_type_is_known() -> None:
    route = Route("relay-nginx", ours=True, relay_to="web/plain")
    annotated = SubjectFacts(NGINX, backend=" web/other ")
    found = service_facts(SERVICES, (route,), (annotated,))
    assert {key: one.service.type for key, one in found.items()} == {
        KEY: "LoadBalancer",
        "web/plain": "ClusterIP",
        "web/other": "ClusterIP",
    }


def test_what_is_not_there_stays_unknown() -> None:
    route = Route("relay-nginx", ours=True, relay_to="web/gone")
    assert service_facts(SERVICES, (route,), (SubjectFacts(NGINX, backend=""),)) == {KEY: SERVICE}


def test_an_external_name_is_nothing_that_a_relay_dials() -> None:
    assert KeptService(frozenset(), type="ExternalName").external
    assert not PLAIN.external
