"""The doctor on clusters with one controller and one load balancer: each header mode on each path of the packets."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    KEY,
    NO_HEADER,
    antrea,
    cilium,
    ingress,
    nginx_controller,
    node,
    point,
)
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import HOST, NO_RELAY, RELAY, RELAY_STEP, State, differences, healthy, table, wrong
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

NAME: Final = "lb.example.org"
"""A hostname that some load balancers have in their status."""
SECOND: Final = "203.0.113.11"
HETZNER_SWITCH: Final = "load-balancer.hetzner.cloud/uses-proxyprotocol"
HETZNER: Final = {HETZNER_SWITCH: "true"}
UNSET: Final = {HETZNER_SWITCH: "false"}
DIRECT: Final = f"DNSPROXY_TARGET_FOR=nginx=service:{KEY}"
"""The advice to lead the names to a controller that takes connections without the header."""
SHORT: Final = (*nginx_controller(point(BALANCER)), ingress(HOST, BALANCER))
PLAIN: Final = (*nginx_controller(point(BALANCER), settings=NO_HEADER), ingress(HOST, BALANCER))
PROXY_MODE: Final = (*nginx_controller(point(BALANCER, "Proxy"), annotations=HETZNER), ingress(HOST, BALANCER))
NAMED: Final = (*nginx_controller(point(NAME), annotations=HETZNER), ingress(HOST, NAME))
DNS: Final = {HOST: (BALANCER,), NAME: (BALANCER,)}

STATES: Final = (
    State(
        name="required, short-circuited",
        objects=SHORT,
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        dns=DNS,
        expected=wrong("short-circuited", told=("header-required",), advice=(RELAY, "rollout status")),
    ),
    State(
        name="required, short-circuited at Hetzner",
        objects=(*nginx_controller(point(BALANCER), annotations=HETZNER), ingress(HOST, BALANCER), node("hcloud://1")),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        dns=DNS,
        expected=wrong("short-circuited", advice=("load-balancer.hetzner.cloud/hostname=", RELAY)),
    ),
    State(
        name="required by haproxy, short-circuited",
        objects=SHORT,
        at={CONTROLLER: Server.HAPROXY, BALANCER: Server.HAPROXY},
        dns=DNS,
        expected=wrong("short-circuited", advice=(RELAY,)),
    ),
    State(
        name="rejected, short-circuited",
        objects=PLAIN,
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
        dns=DNS,
        expected=healthy(untold=("short-circuited", "header-required"), no_advice=NO_RELAY),
    ),
    State(
        name="accepted, short-circuited",
        objects=SHORT,
        at={CONTROLLER: Server.ACCEPTS, BALANCER: Server.ACCEPTS},
        dns=DNS,
        expected=healthy("takes-both", untold=("short-circuited", "header-required"), no_advice=NO_RELAY),
    ),
    State(
        name="required, ipMode Proxy",
        objects=PROXY_MODE,
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
        dns=DNS,
        expected=healthy("reached", "header-required", no_advice=NO_RELAY),
    ),
    State(
        name="required in version 2, ipMode Proxy",
        objects=PROXY_MODE,
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER_V2},
        dns=DNS,
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    State(
        name="required, a hostname in the status",
        objects=NAMED,
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
        dns=DNS,
        expected=healthy("reached", "header-required", no_advice=NO_RELAY),
    ),
    State(
        name="required, ipMode VIP, and Antrea leaves load balancer addresses alone",
        objects=SHORT,
        plane=antrea(takes_addresses=False),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
        dns=DNS,
        expected=healthy("reached", untold=("short-circuited",), no_advice=NO_RELAY),
    ),
    State(
        name="required, ipMode VIP, and Antrea takes load balancer addresses",
        objects=SHORT,
        plane=antrea(takes_addresses=True),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        dns=DNS,
        expected=wrong("short-circuited", advice=(RELAY,)),
    ),
    State(
        name="required, ipMode VIP, with an unknown data plane that reaches the load balancer",
        objects=SHORT,
        plane=(),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
        dns=DNS,
        expected=healthy("reached", untold=("short-circuited",), no_advice=NO_RELAY),
    ),
    State(
        name="required, ipMode VIP, with an unknown data plane that does not reach it",
        objects=SHORT,
        plane=(),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        dns=DNS,
        expected=wrong("short-circuited", advice=(RELAY,)),
    ),
    State(
        name="required, ipMode Proxy with Cilium",
        objects=PROXY_MODE,
        plane=cilium("v1.18.3"),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
        dns=DNS,
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    State(
        name="required, ipMode Proxy on one of two addresses",
        objects=(*nginx_controller(point(BALANCER, "Proxy"), point(SECOND)), ingress(HOST, BALANCER, SECOND)),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER, SECOND: Server.REQUIRES},
        dns={HOST: (BALANCER, SECOND)},
        expected=wrong("short-circuited", evidence=(SECOND,), advice=(RELAY,)),
    ),
    State(
        name="rejected, ipMode Proxy",
        objects=(*nginx_controller(point(BALANCER, "Proxy"), settings=NO_HEADER), ingress(HOST, BALANCER)),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
        dns=DNS,
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    State(
        name="rejected, a hostname in the status",
        objects=(*nginx_controller(point(NAME), settings=NO_HEADER), ingress(HOST, NAME)),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
        dns=DNS,
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    State(
        name="accepted, ipMode Proxy",
        objects=PROXY_MODE,
        at={CONTROLLER: Server.ACCEPTS, BALANCER: Server.ACCEPTS},
        dns=DNS,
        expected=healthy("takes-both", "reached", no_advice=NO_RELAY),
    ),
    State(
        name="accepted, a hostname in the status",
        objects=NAMED,
        at={CONTROLLER: Server.ACCEPTS, BALANCER: Server.ACCEPTS},
        dns=DNS,
        expected=healthy("takes-both", "reached", no_advice=NO_RELAY),
    ),
    State(
        name="required, and the load balancer is not set to send the header",
        objects=(*nginx_controller(point(BALANCER, "Proxy"), annotations=UNSET), ingress(HOST, BALANCER)),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER_WITHOUT_HEADER},
        dns=DNS,
        expected=wrong("header-missing", "header-lost", advice=(f"{HETZNER_SWITCH}=true",)),
    ),
    State(
        name="rejected, and the load balancer sends the header",
        objects=(
            *nginx_controller(point(BALANCER, "Proxy"), settings=NO_HEADER, annotations=HETZNER),
            ingress(HOST, BALANCER),
        ),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.BALANCER_OF_REJECTS},
        dns=DNS,
        expected=wrong(
            "header-unwanted",
            "balancer-unserved",
            advice=(DIRECT, 'use-proxy-protocol: "true"'),
            no_advice=(RELAY_STEP,),
        ),
    ),
    State(
        name="rejected, short-circuited past a load balancer that sends the header",
        objects=(
            *nginx_controller(point(BALANCER), settings=NO_HEADER, annotations=HETZNER),
            ingress(HOST, BALANCER),
        ),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
        dns=DNS,
        expected=wrong("header-unwanted", advice=('use-proxy-protocol: "true"',), no_advice=(RELAY,)),
    ),
    State(
        name="required, short-circuited with MetalLB behind a proxy that sends the header",
        objects=(
            *nginx_controller(point(BALANCER), annotations={"metallb.io/ip-allocated-from-pool": "public"}),
            ingress(HOST, BALANCER),
        ),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        dns=DNS,
        expected=wrong("short-circuited", told=("header-from-outside",), advice=(RELAY,)),
    ),
    State(
        name="a host without TLS",
        objects=(*nginx_controller(point(BALANCER)), ingress(HOST, BALANCER, tls=False)),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        dns=DNS,
        expected=wrong("short-circuited", advice=(RELAY,)),
    ),
    State(
        name="a load balancer that is dead for pods",
        objects=PROXY_MODE,
        at={CONTROLLER: Server.REQUIRES, BALANCER: Fate.UNREACHABLE},
        dns=DNS,
        expected=wrong("balancer-unserved", advice=(RELAY,)),
    ),
    State(
        name="a load balancer that refuses pods",
        objects=PROXY_MODE,
        at={CONTROLLER: Server.REQUIRES, BALANCER: Fate.REFUSED},
        dns=DNS,
        expected=wrong("balancer-unserved", advice=(RELAY,)),
    ),
    State(
        name="all hosts, one is short-circuited",
        host="",
        objects=SHORT,
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        dns=DNS,
        expected=wrong("short-circuited", untold=("not-needed",), advice=(RELAY,)),
    ),
    State(
        name="all hosts, none needs anything",
        host="",
        objects=PROXY_MODE,
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
        dns=DNS,
        expected=healthy("not-needed", no_advice=NO_RELAY),
    ),
)


@table(*STATES)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
