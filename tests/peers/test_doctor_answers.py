"""The doctor where DNS leads pods elsewhere than to the load balancer in the status: there it must look, not here."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    KEY,
    NO_HEADER,
    TRAEFIK,
    ingress,
    ingress_class,
    nginx_controller,
    point,
    service,
    workload,
)
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import HOST, NO_RELAY, RELAY, RELAY_STEP, State, differences, healthy, table, wrong
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

NAME: Final = "lb.example.org"
DEAD: Final = "198.51.100.9"
"""An address that no load balancer has."""
OUTSIDE: Final = "198.51.100.80"
OTHER_CONTROLLER: Final = "10.96.0.81"
OTHER_BALANCER: Final = "203.0.113.20"

DIRECT: Final = f"DNSPROXY_TARGET_FOR=nginx=service:{KEY}"
"""The advice to lead the names to a controller that takes connections without the header."""

SHORT: Final = (*nginx_controller(point(BALANCER)), ingress(HOST, BALANCER))
PLAIN: Final = (*nginx_controller(point(BALANCER), settings=NO_HEADER), ingress(HOST, BALANCER))
PROXY_MODE: Final = (*nginx_controller(point(BALANCER, "Proxy")), ingress(HOST, BALANCER))
NAMED: Final = (*nginx_controller(point(NAME)), ingress(HOST, NAME))
TAKEN: Final = {CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS}
LIVING: Final = {CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER}
FAILING: Final = {CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES}
SECOND: Final = (
    ingress_class("traefik", TRAEFIK),
    service("traefik/traefik", OTHER_CONTROLLER, points=[point(OTHER_BALANCER)]),
    workload("traefik/traefik", image="docker.io/library/traefik:v3.5.3"),
)
"""Another controller of the cluster, with a load balancer of its own."""

STATES: Final = (
    State(
        name="a split horizon to a dead address",
        objects=PLAIN,
        at={**TAKEN, DEAD: Fate.UNREACHABLE},
        dns={HOST: (DEAD,)},
        public={HOST: (BALANCER,)},
        expected=wrong("answer-dead", evidence=(DEAD,), advice=(DIRECT,), no_advice=(RELAY_STEP,)),
    ),
    State(
        name="a stale record of a load balancer that is gone",
        objects=PROXY_MODE,
        at={**LIVING, DEAD: Fate.REFUSED},
        dns={HOST: (DEAD,)},
        expected=wrong("answer-dead", evidence=(DEAD,)),
    ),
    State(
        name="one of two answers is dead",
        objects=PROXY_MODE,
        at={**LIVING, DEAD: Fate.REFUSED},
        dns={HOST: (BALANCER, DEAD)},
        expected=wrong("answer-dead", evidence=(DEAD,)),
    ),
    State(
        name="a hostname in the status, and a dead address in DNS",
        objects=NAMED,
        at={**LIVING, DEAD: Fate.UNREACHABLE},
        dns={HOST: (DEAD,), NAME: (BALANCER,)},
        expected=wrong("answer-dead", evidence=(DEAD,)),
    ),
    State(
        name="a hostname in the status, and no record of the host",
        objects=NAMED,
        at=LIVING,
        dns={NAME: (BALANCER,)},
        expected=wrong("no-record"),
    ),
    State(
        name="no record anywhere",
        objects=PLAIN,
        at=TAKEN,
        dns={},
        expected=wrong("no-record", told=("no-public-record",), advice=(DIRECT,), no_advice=(RELAY_STEP,)),
    ),
    State(
        name="no record in the cluster's DNS only",
        objects=PLAIN,
        at=TAKEN,
        dns={},
        public={HOST: (BALANCER,)},
        expected=wrong("no-record", untold=("no-public-record",), advice=(DIRECT,), no_advice=(RELAY_STEP,)),
    ),
    State(
        name="another controller of the cluster",
        objects=(*PLAIN, *SECOND),
        at={**TAKEN, OTHER_CONTROLLER: Server.OTHER, OTHER_BALANCER: Server.OTHER},
        dns={HOST: (OTHER_BALANCER,)},
        expected=wrong("wrong-server", "certificate-unfit", evidence=(OTHER_BALANCER,), no_advice=(RELAY,)),
    ),
    State(
        name="a server outside that does not know the host",
        objects=PROXY_MODE,
        at={**LIVING, OUTSIDE: Server.OTHER},
        dns={HOST: (OUTSIDE,)},
        expected=wrong("wrong-server", "certificate-unfit", evidence=(OUTSIDE,), no_advice=(RELAY,)),
    ),
    State(
        name="an outside address that resets connections",
        objects=PROXY_MODE,
        at={**LIVING, OUTSIDE: Server.RESETS},
        dns={HOST: (OUTSIDE,)},
        expected=wrong("answer-unserved", evidence=(OUTSIDE,)),
    ),
    State(
        name="a CDN in front that works",
        objects=SHORT,
        at={**FAILING, OUTSIDE: Server.CDN},
        dns={HOST: (OUTSIDE,)},
        expected=healthy("reached", "public-elsewhere", untold=("short-circuited",), no_advice=NO_RELAY),
    ),
    State(
        name="a CDN in front by a CNAME record",
        objects=SHORT,
        at={**FAILING, OUTSIDE: Server.CDN},
        dns={HOST: ("cdn.example.net",), "cdn.example.net": (OUTSIDE,)},
        expected=healthy("reached", untold=("short-circuited",), no_advice=NO_RELAY),
    ),
    State(
        name="an outside proxy that adds the header",
        objects=SHORT,
        at={**FAILING, OUTSIDE: Server.BALANCER},
        dns={HOST: (OUTSIDE,)},
        public={HOST: (BALANCER,)},
        expected=healthy("reached", untold=("short-circuited",), no_advice=NO_RELAY),
    ),
    State(
        name="an address in front that passes connections on without the header",
        objects=PROXY_MODE,
        at={**LIVING, OUTSIDE: Server.BALANCER_WITHOUT_HEADER},
        dns={HOST: (OUTSIDE,)},
        expected=wrong("header-lost", evidence=(OUTSIDE,), advice=(RELAY,)),
    ),
    State(
        name="the ClusterIP of a controller that requires the header",
        objects=SHORT,
        at=FAILING,
        dns={HOST: (CONTROLLER,)},
        public={HOST: (BALANCER,)},
        expected=wrong("header-lost", evidence=(CONTROLLER,), advice=(RELAY,)),
    ),
    State(
        name="the ClusterIP of a controller without the header",
        objects=PLAIN,
        at={CONTROLLER: Server.REJECTS, BALANCER: Fate.UNREACHABLE},
        dns={HOST: (CONTROLLER,)},
        public={HOST: (BALANCER,)},
        expected=healthy(untold=("balancer-unserved",), no_advice=NO_RELAY),
    ),
    State(
        name="two Ingresses, and DNS leads to the one that serves",
        objects=(*SHORT, *SECOND, ingress(HOST, OTHER_BALANCER, name="spare", class_name="traefik")),
        at={**FAILING, OTHER_CONTROLLER: Server.ACCEPTS, OTHER_BALANCER: Server.ACCEPTS},
        dns={HOST: (OTHER_BALANCER,)},
        expected=healthy("short-circuit-harmless", untold=("short-circuited",), no_advice=NO_RELAY),
    ),
    State(
        name="two Ingresses, and DNS leads to the short circuit",
        objects=(*SHORT, *SECOND, ingress(HOST, OTHER_BALANCER, name="spare", class_name="traefik")),
        at={**FAILING, OTHER_CONTROLLER: Server.ACCEPTS, OTHER_BALANCER: Server.ACCEPTS},
        dns={HOST: (BALANCER,)},
        expected=wrong("short-circuited", evidence=(BALANCER,), advice=(RELAY,)),
    ),
)


@table(*STATES)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
