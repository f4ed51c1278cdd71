"""Answers that lead to the relay for a class that the relay does not serve."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Facts, Host, Port, RouteService
from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge.diagnose import judge
from tests.dnsproxy.doctor.making import (
    OTHER_BALANCER,
    OTHER_CONTROLLER,
    OTHER_HOST,
    OTHER_KEY,
    RELAY,
    REQUIRES,
    ROUTE,
    SERVED,
    answering,
    bad,
    installed,
    lines,
    named,
    other_service,
    probes_at,
    steering,
)


def two_classes(status: int, *, behind: int = 200, routes: str = "") -> Facts:
    """Two controllers that require the header, and one relay for both; `behind`: the status at the second one."""
    seen = installed()
    assert seen.relay is not None
    own = probes_at(OTHER_CONTROLLER, REQUIRES, hostname=OTHER_HOST)
    at_relay = probes_at(RELAY, SERVED, hostname=OTHER_HOST)
    settings = {"PROXY_ROUTE": f"{seen.relay.settings['PROXY_ROUTE']}{routes}"}
    return replace(
        seen,
        relay=replace(seen.relay, settings=settings),
        services=(*seen.services, other_service()),
        hosts=(*seen.hosts, Host(OTHER_HOST, "Ingress web/other", "other", (OTHER_BALANCER,))),
        lookups=(*seen.lookups, answering(RELAY, hostname=OTHER_HOST)),
        probes=(
            *seen.probes,
            *probes_at(OTHER_BALANCER, (Outcome.CLOSED,), hostname=OTHER_HOST),
            *(replace(one, status=behind) for one in own if one.outcome is Outcome.ANSWERED),
            *(one for one in own if one.outcome is not Outcome.ANSWERED),
            *(replace(one, status=status) for one in at_relay),
        ),
    )


def test_a_relay_to_another_controller_that_requires_the_header_too_does_not_serve_a_class() -> None:
    finding = named(judge(two_classes(404)), "wrong-class")
    assert finding.hosts == (OTHER_HOST,)
    assert lines(finding) == ["DNSPROXY_TARGET=auto"]


@pytest.mark.parametrize(
    ("status", "behind", "routes"),
    [(200, 200, ""), (404, 404, ""), (0, 200, ""), (404, 200, " 8081=controller.other.svc:80")],
    ids=["the same answer", "the same error", "no status", "a route to it"],
)
def test_a_relay_that_may_lead_to_the_same_controller_by_another_name_is_not_blamed(
    status: int, behind: int, routes: str
) -> None:
    assert bad(judge(two_classes(status, behind=behind, routes=routes))) == set()


OTHER_RELAY = "10.96.0.91"


def two_routes(backend: str, *, led_to: str = OTHER_RELAY) -> Facts:
    """An installation that steers both classes; `backend`: of the second one's route Service."""
    other = RouteService("switchback/relay-other", backend, (OTHER_RELAY,), (Port(80),))
    seen = two_classes(404)
    probes = [
        replace(one, address=led_to) if one.hostname == OTHER_HOST and one.address == RELAY else one
        for one in seen.probes
    ]
    lookups = [replace(one, addresses=(led_to,)) if one.hostname == OTHER_HOST else one for one in seen.lookups]
    return steering(
        ROUTE, other, services=seen.services, hosts=seen.hosts, probes=tuple(probes), lookups=tuple(lookups)
    )


def test_each_class_is_compared_with_its_own_route() -> None:
    assert bad(judge(two_routes(OTHER_KEY))) == set()


@pytest.mark.parametrize(
    ("backend", "led_to"),
    [("elsewhere/controller", OTHER_RELAY), ("", OTHER_RELAY), (OTHER_KEY, RELAY)],
    ids=["a route to another Service", "a route to nowhere", "the route of another class"],
)
def test_a_class_that_is_answered_with_another_ones_route_leads_to_what_operate_says(backend: str, led_to: str) -> None:
    finding = named(judge(two_routes(backend, led_to=led_to)), "wrong-class")
    assert finding.hosts == (OTHER_HOST,)
    assert lines(finding)[0] == "kubectl -n switchback exec deploy/operate -- dnsproxy status"
