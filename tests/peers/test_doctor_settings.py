"""The doctor on settings that count for some sources only, that are off by default, or that a program ignores."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kit.doctor_stage.gateways import gateway, gateway_class, http_route
from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    KEY,
    NO_HEADER,
    TRAEFIK,
    Object,
    cilium,
    config_map,
    endpoint_slice,
    ingress,
    ingress_class,
    kube_proxy,
    nginx_controller,
    node,
    point,
    service,
    workload,
)
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import (
    HOST,
    NO_RELAY,
    RELAY,
    RELAY_STEP,
    State,
    differences,
    healthy,
    not_known,
    table,
    wrong,
)
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

DNS: Final = {HOST: (BALANCER,)}
OUTSIDE: Final = ()
"""The arguments from outside the cluster, where nothing is dialled."""
NOT_SEEN: Final = "whether pods are served"
CLAIMS: Final = ("short-circuited", "short-circuit-likely", "short-circuit-harmless", "reached", "not-needed")
"""What nobody can know who saw no connection of a pod."""
DIRECT: Final = f"DNSPROXY_TARGET_FOR=nginx=service:{KEY}"
HETZNER: Final = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
DIGITAL_OCEAN: Final = {"service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol": "true"}
RANGES: Final = ["192.0.2.0/24"]
"""Networks of clients outside."""
ABSENT: Final = {"use-forwarded-headers": "false"}
"""A ConfigMap of ingress-nginx without the switch, which is off by default."""

REQUIRING: Final = {CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES}
REJECTING: Final = {CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS}


def _haproxy(networks: str) -> tuple[Object, ...]:
    """The controller of HAProxy Technologies, which requires the header of these sources only."""
    key = "haproxy-controller/haproxy-kubernetes-ingress"
    return (
        ingress_class("haproxy", "haproxy.org/ingress-controller"),
        service(key, CONTROLLER, points=[point(BALANCER)]),
        workload(key, f"--configmap={key}", image="docker.io/haproxytech/kubernetes-ingress:3.2.11"),
        config_map(key, {"proxy-protocol": networks}),
        ingress(HOST, BALANCER, class_name="haproxy"),
    )


def _traefik(*arguments: str) -> tuple[Object, ...]:
    points = ("--entryPoints.web.address=:8000/tcp", "--entryPoints.websecure.address=:8443/tcp")
    return (
        ingress_class("traefik", TRAEFIK),
        service("traefik/traefik", CONTROLLER, points=[point(BALANCER)], ports={"web": 80, "websecure": 443}),
        workload("traefik/traefik", *points, *arguments, image="docker.io/library/traefik:v3.5.3"),
        ingress(HOST, BALANCER, class_name="traefik"),
    )


def _trusting(networks: str) -> tuple[Object, ...]:
    """Traefik that believes the header of these sources."""
    names = ("web", "websecure")
    return _traefik(*(f"--entryPoints.{name}.proxyProtocol.trustedIPs={networks}" for name in names))


CILIUM_INGRESS: Final = (
    ingress_class("cilium", "cilium.io/ingress-controller"),
    service(
        "kube-system/cilium-ingress",
        CONTROLLER,
        points=[point(BALANCER)],
        labels={"cilium.io/ingress": "true", "app.kubernetes.io/part-of": "cilium"},
        selector={},
    ),
    ingress(HOST, BALANCER, class_name="cilium"),
)
"""The Service that Cilium shares among its Ingresses; Envoy on the nodes answers it."""
CILIUM_GATEWAY: Final = (
    gateway_class("io.cilium/gateway-controller"),
    service(
        "web/cilium-gateway-main",
        CONTROLLER,
        points=[point(BALANCER)],
        labels={"gateway.networking.k8s.io/gateway-name": "main"},
        selector={},
    ),
    gateway(HOST, BALANCER),
    http_route(HOST),
)
"""A Gateway of Cilium, with a Service of its own."""


def _ignored(annotations: dict[str, str], provider: str) -> tuple[Object, ...]:
    made = nginx_controller(point(BALANCER, "Proxy"), annotations=annotations)
    return (*made, ingress(HOST, BALANCER), node(provider))


SOURCES: Final = (
    State(
        name="HAProxy requires the header of pods",
        objects=_haproxy("10.244.0.0/16"),
        at={CONTROLLER: Server.HAPROXY_FOR_PODS, BALANCER: Server.HAPROXY_FOR_PODS},
        dns=DNS,
        expected=wrong("short-circuited", told=("header-required",), untold=("takes-both",), advice=(RELAY,)),
    ),
    State(
        name="HAProxy requires the header of others than pods",
        objects=_haproxy("192.0.2.0/24"),
        at={CONTROLLER: Server.HAPROXY_FOR_OTHERS, BALANCER: Server.HAPROXY_FOR_OTHERS},
        dns=DNS,
        expected=healthy("short-circuit-harmless", untold=("short-circuited", "takes-both"), no_advice=NO_RELAY),
    ),
    State(
        name="from outside: HAProxy requires the header of pods",
        objects=_haproxy("10.244.0.0/16, 192.0.2.0/24"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=wrong("short-circuited", untold=("takes-both",), advice=(RELAY,)),
    ),
    State(
        name="from outside: HAProxy requires the header of others than pods",
        objects=_haproxy("192.0.2.0/24"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=(*CLAIMS, "takes-both", "header-required"), no_advice=NO_RELAY),
    ),
    State(
        name="from outside: HAProxy requires the header of some pods",
        objects=_haproxy("10.244.0.0/25"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=(*CLAIMS, "takes-both", "header-required"), advice=("facts.json",)),
    ),
    State(
        name="Traefik trusts the header of pods",
        objects=_trusting("10.244.0.0/16"),
        at={CONTROLLER: Server.ACCEPTS, BALANCER: Server.ACCEPTS},
        dns=DNS,
        expected=healthy("takes-both", untold=("short-circuited", "header-required"), no_advice=NO_RELAY),
    ),
    State(
        name="from outside: Traefik trusts the header of others than pods",
        objects=_trusting("192.0.2.0/24"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=(*CLAIMS, "header-required"), no_advice=NO_RELAY),
    ),
    State(
        name="from outside: Traefik trusts no header",
        objects=_traefik(),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=(*CLAIMS, "takes-both", "header-required"), no_advice=NO_RELAY),
    ),
    State(
        name="Cilium requires the header at its Ingresses",
        objects=CILIUM_INGRESS,
        plane=cilium(enable_ingress_proxy_protocol="true"),
        at=REQUIRING,
        dns=DNS,
        expected=wrong("short-circuited", told=("header-required",), advice=(RELAY,)),
    ),
    State(
        name="from outside: Cilium requires the header at its Ingresses",
        objects=CILIUM_INGRESS,
        plane=cilium(enable_ingress_proxy_protocol="true"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=wrong("short-circuited", told=("header-required",), advice=(RELAY,)),
    ),
    State(
        name="from outside: Cilium requires the header at Gateways",
        objects=CILIUM_GATEWAY,
        plane=cilium(enable_gateway_api_proxy_protocol="true"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=wrong("short-circuited", told=("header-required",), advice=(RELAY,)),
    ),
    State(
        name="from outside: Cilium requires the header at Ingresses, and the host is a Gateway's",
        objects=CILIUM_GATEWAY,
        plane=cilium(enable_ingress_proxy_protocol="true"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=(*CLAIMS, "header-required"), no_advice=NO_RELAY),
    ),
    State(
        name="from outside: Cilium requires the header at Gateways, and the host is an Ingress's",
        objects=CILIUM_INGRESS,
        plane=cilium(enable_gateway_api_proxy_protocol="true", enable_ingress_proxy_protocol="false"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=(*CLAIMS, "header-required"), no_advice=NO_RELAY),
    ),
)
"""Settings that name sources or kinds of hosts."""

UNSEEN: Final = (
    State(
        name="from outside: a controller that is scaled to zero",
        objects=(
            *nginx_controller(point(BALANCER), settings=NO_HEADER, replicas=0),
            endpoint_slice(KEY),
            ingress(HOST, BALANCER),
        ),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=CLAIMS, no_advice=NO_RELAY),
    ),
    State(
        name="from outside: loadBalancerSourceRanges without the pods",
        objects=(
            *nginx_controller(point(BALANCER), settings=NO_HEADER, loadBalancerSourceRanges=RANGES),
            ingress(HOST, BALANCER),
        ),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=CLAIMS, no_advice=NO_RELAY),
    ),
    State(
        name="loadBalancerSourceRanges with the pods",
        objects=(
            *nginx_controller(point(BALANCER), settings=NO_HEADER, loadBalancerSourceRanges=[*RANGES, "10.244.0.0/16"]),
            ingress(HOST, BALANCER),
        ),
        at=REJECTING,
        dns=DNS,
        expected=healthy("short-circuit-harmless", no_advice=NO_RELAY),
    ),
    State(
        name="loadBalancerSourceRanges drop pods, and the controller takes them",
        objects=(
            *nginx_controller(point(BALANCER), settings=NO_HEADER, loadBalancerSourceRanges=RANGES),
            ingress(HOST, BALANCER),
        ),
        at={CONTROLLER: Server.REJECTS, BALANCER: Fate.DROPPED},
        dns=DNS,
        expected=wrong(
            "balancer-unserved",
            untold=("short-circuit-harmless",),
            advice=(DIRECT,),
            no_advice=(RELAY_STEP,),
            evidence=("loadBalancerSourceRanges",),
        ),
    ),
    State(
        name="loadBalancerSourceRanges drop pods, and the controller requires the header",
        objects=(*nginx_controller(point(BALANCER), loadBalancerSourceRanges=RANGES), ingress(HOST, BALANCER)),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Fate.DROPPED},
        dns=DNS,
        expected=wrong("balancer-unserved", advice=(RELAY,), evidence=("loadBalancerSourceRanges",)),
    ),
    State(
        name="from outside: use-proxy-protocol is absent",
        objects=(*nginx_controller(point(BALANCER), settings=ABSENT), ingress(HOST, BALANCER)),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=not_known(NOT_SEEN, untold=(*CLAIMS, "header-required"), no_advice=NO_RELAY),
    ),
    State(
        name="from outside: use-proxy-protocol is absent, and the load balancer sends the header",
        objects=(
            *nginx_controller(point(BALANCER), settings=ABSENT, annotations=HETZNER),
            ingress(HOST, BALANCER),
        ),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=wrong("header-unwanted", untold=("short-circuited", "short-circuit-likely"), no_advice=NO_RELAY),
    ),
    State(
        name="use-proxy-protocol is absent, and pods are served",
        objects=(*nginx_controller(point(BALANCER), settings=ABSENT), ingress(HOST, BALANCER)),
        at=REJECTING,
        dns=DNS,
        expected=healthy("short-circuit-harmless", no_advice=NO_RELAY),
    ),
)
"""Settings that show nothing about pods, or are off if they are absent."""

IGNORED: Final = (
    State(
        name="ipMode Proxy, which Cilium 1.16 ignores, at Hetzner",
        objects=_ignored(HETZNER, "hcloud://1"),
        plane=cilium("v1.16.19"),
        at=REQUIRING,
        dns=DNS,
        expected=wrong("ip-mode-ignored", advice=("load-balancer.hetzner.cloud/hostname=", RELAY)),
    ),
    State(
        name="ipMode Proxy, which Cilium 1.18.0 ignores, at DigitalOcean",
        objects=_ignored(DIGITAL_OCEAN, "digitalocean://1"),
        plane=cilium("v1.18.0"),
        at=REQUIRING,
        dns=DNS,
        expected=wrong("ip-mode-ignored", advice=("do-loadbalancer-hostname=", RELAY)),
    ),
    State(
        name="ipMode Proxy, which kube-proxy 1.29 ignores, at Hetzner",
        objects=_ignored(HETZNER, "hcloud://1"),
        plane=(kube_proxy("v1.29.14"),),
        at=REQUIRING,
        dns=DNS,
        expected=wrong("ip-mode-ignored", advice=("load-balancer.hetzner.cloud/hostname=", RELAY)),
    ),
    State(
        name="from outside: ipMode Proxy, which Cilium 1.16 ignores, at Hetzner",
        objects=_ignored(HETZNER, "hcloud://1"),
        plane=cilium("v1.16.19"),
        at={},
        dns=DNS,
        arguments=OUTSIDE,
        expected=wrong("ip-mode-ignored", advice=("load-balancer.hetzner.cloud/hostname=", RELAY)),
    ),
    State(
        name="ipMode Proxy, which Cilium 1.16 ignores, and a controller without the header",
        objects=(*nginx_controller(point(BALANCER, "Proxy"), settings=NO_HEADER), ingress(HOST, BALANCER)),
        plane=cilium("v1.16.19"),
        at=REJECTING,
        dns=DNS,
        expected=healthy(untold=("ip-mode-ignored",), no_advice=NO_RELAY),
    ),
)
"""ipMode on data planes that ignore it: a hostname in the status works there."""


@table(*SOURCES, *UNSEEN, *IGNORED)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
