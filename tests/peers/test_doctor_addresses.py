"""The doctor on load balancer addresses that several Services share, and on hosts with several addresses."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    HEADER,
    KEY,
    NO_HEADER,
    TRAEFIK,
    Object,
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

NODE: Final = "192.0.2.10"
"""The address of the node, which klipper-lb puts into the status of every Service."""
OTHER: Final = "10.96.0.90"
SECOND, THIRD, FOURTH = "203.0.113.11", "203.0.113.12", "203.0.113.13"
DIRECT: Final = f"DNSPROXY_TARGET_FOR=nginx=service:{KEY}"
"""The advice to lead the names to a controller that takes connections without the header."""
SHARING: Final = {"metallb.io/allow-shared-ip": "public"}

TRAEFIK_ON_K3S: Final = (
    ingress_class("traefik", TRAEFIK),
    service("kube-system/traefik", CONTROLLER, points=[point(NODE)], labels={"app.kubernetes.io/name": "traefik"}),
    workload("kube-system/traefik", image="docker.io/rancher/mirrored-library-traefik:3.5.3"),
    ingress(HOST, NODE, class_name="traefik"),
)
REGISTRY: Final = service("registry/registry", OTHER, points=[point(NODE)], ports={"http": 5000}, labels={})
EARLIER: Final = service("apps/registry", OTHER, points=[point(NODE)], ports={"http": 5000}, labels={})
NAMES: Final = service(
    "zone/dns", OTHER, points=[point(BALANCER)], labels={}, annotations=SHARING, ports={"dns": 53}, protocol="UDP"
)
MAIL: Final = service(
    "zone/mail", OTHER, points=[point(BALANCER)], labels={}, annotations=SHARING, ports={"smtp": 25, "imaps": 993}
)
ADMIN: Final = service(
    "zone/admin", OTHER, points=[point(BALANCER)], labels={}, annotations=SHARING, ports={"http": 8080, "https": 8443}
)
AT_NODE: Final = {OTHER + ":5000": Server.REJECTS, NODE + ":5000": Server.REJECTS}


def led(address: str, server: Server) -> dict[str, Server]:
    """Ports 80 and 443 of an address that has other ports too."""
    return {f"{address}:80": server, f"{address}:443": server}


def shared(*others: Object, settings: dict[str, str] = HEADER) -> tuple[Object, ...]:
    """ingress-nginx with MetalLB, and Services on the same address."""
    controller = nginx_controller(point(BALANCER), annotations=SHARING, settings=settings)
    return (*controller, ingress(HOST, BALANCER), *others)


def several(*modes: str) -> tuple[Object, ...]:
    """ingress-nginx with a load balancer of several addresses, an ipMode for each."""
    points = [point(address, mode) for address, mode in zip((BALANCER, SECOND, THIRD, FOURTH), modes, strict=False)]
    return (*nginx_controller(*points), ingress(HOST, *(one["ip"] for one in points)))


STATES: Final = (
    State(
        name="k3s: Traefik requires the header, and a registry on the same address sorts after it",
        objects=(*TRAEFIK_ON_K3S, REGISTRY),
        at={CONTROLLER: Server.HAPROXY, **led(NODE, Server.HAPROXY), **AT_NODE},
        dns={HOST: (NODE,)},
        expected=wrong("short-circuited", evidence=("kube-system/traefik", f"{CONTROLLER}:80"), advice=(RELAY,)),
    ),
    State(
        name="k3s: the same, and the registry sorts before it",
        objects=(*TRAEFIK_ON_K3S, EARLIER),
        at={CONTROLLER: Server.HAPROXY, **led(NODE, Server.HAPROXY), **AT_NODE},
        dns={HOST: (NODE,)},
        expected=wrong("short-circuited", evidence=("kube-system/traefik", f"{CONTROLLER}:80"), advice=(RELAY,)),
    ),
    State(
        name="k3s: Traefik without the header beside a registry",
        objects=(*TRAEFIK_ON_K3S, REGISTRY),
        at={CONTROLLER: Server.REJECTS, **led(NODE, Server.REJECTS), **AT_NODE},
        dns={HOST: (NODE,)},
        expected=healthy("short-circuit-harmless", no_advice=NO_RELAY),
    ),
    State(
        name="k3s: all hosts, Traefik requires the header",
        host="",
        objects=(*TRAEFIK_ON_K3S, REGISTRY),
        at={CONTROLLER: Server.HAPROXY, **led(NODE, Server.HAPROXY), **AT_NODE},
        dns={HOST: (NODE,)},
        expected=wrong("short-circuited", evidence=("kube-system/traefik",), untold=("not-needed",), advice=(RELAY,)),
    ),
    State(
        name="MetalLB: mail on the address of a controller that requires the header",
        objects=shared(MAIL),
        at={CONTROLLER: Server.REQUIRES, **led(BALANCER, Server.REQUIRES), f"{BALANCER}:25": Server.RESETS},
        dns={HOST: (BALANCER,)},
        expected=wrong("short-circuited", evidence=(f"{CONTROLLER}:80",), advice=(RELAY,)),
    ),
    State(
        name="MetalLB: DNS over UDP on the address of a controller that requires the header",
        objects=shared(NAMES),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        dns={HOST: (BALANCER,)},
        expected=wrong("short-circuited", evidence=(f"{CONTROLLER}:80",), advice=(RELAY,)),
    ),
    State(
        name="MetalLB: mail on the address of a controller without the header",
        objects=shared(MAIL, settings=NO_HEADER),
        at={CONTROLLER: Server.REJECTS, **led(BALANCER, Server.REJECTS), f"{BALANCER}:25": Server.RESETS},
        dns={HOST: (BALANCER,)},
        expected=healthy("short-circuit-harmless", no_advice=NO_RELAY),
    ),
    State(
        name="MetalLB: a program on 8080 and 8443 of the address of a controller that requires the header",
        objects=shared(ADMIN),
        at={
            CONTROLLER: Server.REQUIRES,
            OTHER + ":8080": Server.REJECTS,
            **led(BALANCER, Server.REQUIRES),
            BALANCER + ":8080": Server.REJECTS,
        },
        dns={HOST: (BALANCER,)},
        expected=wrong("short-circuited", evidence=(f"{CONTROLLER}:80",), advice=(RELAY,)),
    ),
    State(
        name="MetalLB: port 80 is one Service, port 443 is another one that requires the header",
        objects=(
            *nginx_controller(point(BALANCER), annotations=SHARING, ports={"https": 443}),
            service("plain/redirect", OTHER, points=[point(BALANCER)], ports={"http": 80}, annotations=SHARING),
            ingress(HOST, BALANCER),
        ),
        at={
            f"{CONTROLLER}:443": Server.REQUIRES,
            f"{OTHER}:80": Server.REJECTS,
            f"{BALANCER}:443": Server.REQUIRES,
            f"{BALANCER}:80": Server.REJECTS,
        },
        dns={HOST: (BALANCER,)},
        expected=wrong("short-circuited", evidence=(f"{CONTROLLER}:443",), advice=(RELAY,)),
    ),
    State(
        name="three addresses, all of them serve",
        objects=several("Proxy", "Proxy", "Proxy"),
        at=dict.fromkeys((BALANCER, SECOND, THIRD), Server.BALANCER) | {CONTROLLER: Server.REQUIRES},
        dns={HOST: (BALANCER, SECOND, THIRD)},
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    State(
        name="three addresses, the third resets",
        objects=several("Proxy", "Proxy", "Proxy"),
        at={
            CONTROLLER: Server.REQUIRES,
            BALANCER: Server.BALANCER,
            SECOND: Server.BALANCER,
            THIRD: Server.RESETS,
        },
        dns={HOST: (BALANCER, SECOND, THIRD)},
        expected=wrong("balancer-unserved", evidence=(THIRD,), advice=(RELAY,)),
    ),
    State(
        name="three addresses, and DNS answers only the third, which resets",
        objects=several("Proxy", "Proxy", "Proxy"),
        at={
            CONTROLLER: Server.REQUIRES,
            BALANCER: Server.BALANCER,
            SECOND: Server.BALANCER,
            THIRD: Server.RESETS,
        },
        dns={HOST: (THIRD,)},
        expected=wrong("balancer-unserved", evidence=(THIRD,), advice=(RELAY,)),
    ),
    State(
        name="three addresses, the third is short-circuited",
        objects=several("Proxy", "Proxy", "VIP"),
        at={
            CONTROLLER: Server.REQUIRES,
            BALANCER: Server.BALANCER,
            SECOND: Server.BALANCER,
            THIRD: Server.REQUIRES,
        },
        dns={HOST: (BALANCER, SECOND, THIRD)},
        expected=wrong("short-circuited", evidence=(THIRD,), advice=(RELAY,)),
    ),
    State(
        name="three addresses in the status, the third is dead and in no answer of DNS",
        objects=several("Proxy", "Proxy", "Proxy"),
        at={
            CONTROLLER: Server.REQUIRES,
            BALANCER: Server.BALANCER,
            SECOND: Server.BALANCER,
            THIRD: Fate.UNREACHABLE,
        },
        dns={HOST: (BALANCER, SECOND)},
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    State(
        name="four answers of DNS, the fourth is a dead address of no load balancer",
        objects=several("VIP", "VIP", "VIP"),
        at=dict.fromkeys((BALANCER, SECOND, THIRD, CONTROLLER), Server.ACCEPTS) | {FOURTH: Fate.REFUSED},
        dns={HOST: (BALANCER, SECOND, THIRD, FOURTH)},
        expected=wrong("answer-dead", evidence=(FOURTH,), advice=(DIRECT,), no_advice=(RELAY_STEP,)),
    ),
)


@table(*STATES)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
