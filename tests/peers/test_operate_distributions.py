"""`dnsproxy operate` without values on what each distribution has: a real API server, kube-proxy, nginx and haproxy.

All states are in one cluster at once, each with a class and a load balancer of its own: none of them may disturb
another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.kit import gateway_api
from tests.kit.distributions import ingress_service
from tests.kit.doctor_stage.objects import kube_proxy
from tests.kit.doctor_stage.servers import Server
from tests.kit.networks import root
from tests.kit.operate_stage.objects import ingress, ingress_class, named, vip
from tests.kit.operate_stage.stage import PEERS, Stage, stage
from tests.kit.operate_stage.states import (
    ALONE,
    NOTHING,
    RELAY,
    State,
    check,
    controller,
    of_gateway,
    playing,
    with_class,
)

__all__ = ["root", "stage"]

pytestmark = pytest.mark.peer(*PEERS)

HELM: Final = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
NODES: Final = vip("198.51.100.1", "198.51.100.2")
SHARED: Final = vip("203.0.113.70")
K3S, COZYSTACK = ingress_service("k3s"), ingress_service("cozystack-host")
"""The Services of the controllers that distributions ship, from their own sources."""

STATES: Final = (
    with_class("kubeadm", "ingress-nginx/ingress-nginx-controller", Server.REQUIRES, vip("203.0.113.11"), RELAY),
    with_class("k3s", K3S, Server.HAPROXY, NODES, RELAY, K3S, more=(
        # klipper-lb gives the nodes' addresses to every Service of type LoadBalancer.
        *controller("mq/broker", Server.REJECTS, NODES, ports={"mqtt": 1883}),
        *controller("games/server", Server.REJECTS, NODES, ports=[
            {"name": "game", "port": 27015, "protocol": "UDP"}]),
    )),
    with_class("rke2", ingress_service("rke2"), Server.REQUIRES, vip("203.0.113.12"), RELAY),
    State("rke2-host-ports", (
        ingress_class("rke2-host-ports"),
        ingress("rke2-host-ports", "rke2-host-ports.example.org", "rke2-host-ports", points=vip("198.51.100.9")),
    ), "ingressclass/rke2-host-ports", ALONE, "no Service of type LoadBalancer has an address of its status"),
    with_class("talos", "ingress/nginx", Server.REQUIRES, named("lb.talos.example.net"), NOTHING, "hostname"),
    with_class("hetzner", "hetzner/nginx", Server.REQUIRES, vip("203.0.113.13", "2001:db8:2::13"), RELAY),
    with_class("hetzner-ccm", "hetzner-ccm/nginx", Server.REQUIRES, vip("203.0.113.14", mode="Proxy"), NOTHING,
               "ipMode Proxy"),
    with_class("doks", "doks/ingress-nginx-controller", Server.REQUIRES, vip("203.0.113.15"), RELAY),
    with_class("doks-hostname", "doks-hostname/ingress-nginx-controller", Server.REQUIRES,
               named("lb.doks.example.net"), NOTHING),
    with_class("aks", ingress_service("aks"), Server.REJECTS, vip("203.0.113.16"), NOTHING,
               "pods reach it without the header", class_name="webapprouting.kubernetes.azure.com"),
    State("gke", (
        # GKE's controller needs no IngressClass, and its load balancer is no Service's.
        ingress("gke", "gke.example.org", "gce", points=vip("203.0.113.17")),
    ), "ingressclass/gce", ALONE, "no Service of type LoadBalancer"),
    with_class("cozystack-v1-4", "cozy-ingress-nginx/ingress-nginx-controller", Server.REQUIRES, vip("203.0.113.18"),
               RELAY, "cozy-ingress-nginx/ingress-nginx-controller"),
    with_class("cozystack-v1-5", COZYSTACK, Server.REQUIRES, vip("203.0.113.19"), RELAY, COZYSTACK,
               class_name="tenant-root"),
    with_class("cozystack-tenant", "cozy-tenant/ingress-nginx-controller", Server.REQUIRES, vip("203.0.113.20"), RELAY),
    with_class("ipv6", "ipv6/nginx", Server.REQUIRES, vip("2001:db8:2::21"), RELAY,
               addresses=(Server.REQUIRES.ipv6,), ipFamilies=["IPv6"], ipFamilyPolicy="SingleStack"),
    with_class("dual-stack", "dual/nginx", Server.REQUIRES, vip("203.0.113.22", "2001:db8:2::22"), RELAY,
               ipFamilies=["IPv6", "IPv4"], ipFamilyPolicy="RequireDualStack"),
    # Two controllers behind the same address: the Helm release tells which one is the class's.
    with_class("released", "released/nginx", Server.REQUIRES, SHARED, RELAY, "released/nginx",
               annotations=dict(zip(HELM, ("nginx", "released"), strict=True)),
               metadata={"annotations": dict(zip(HELM, ("nginx", "released"), strict=True))},
               more=controller("released/other", Server.REJECTS, SHARED)),
    with_class("annotated", "annotated/nginx", Server.REQUIRES, vip("203.0.113.71"), RELAY,
               "switchback.dev/backend names annotated/nginx",
               metadata={"annotations": {"switchback.dev/backend": "annotated/nginx"}},
               more=controller("annotated/other", Server.REJECTS, vip("203.0.113.71"))),
    with_class("ambiguous", "ambiguous/nginx", Server.REQUIRES, vip("203.0.113.72"), ALONE,
               "annotate it with switchback.dev/backend",
               more=controller("ambiguous/other", Server.REQUIRES, vip("203.0.113.72"))),
    with_class("no-address", "no-address/nginx", Server.REQUIRES, [], ALONE, "annotate it"),
    with_class("silent", "silent/nginx", Server.SILENT, vip("203.0.113.73"), ALONE),
    of_gateway("envoy", "envoy-gateway-system/envoy-infra", ("203.0.113.30",), RELAY,
               *controller("envoy-gateway-system/envoy-infra", Server.HAPROXY, vip("203.0.113.30"))),
    # Two Services with the address of a Gateway; its class names the controller.
    of_gateway("classed", "switchback.dev/backend names classed/proxy", ("203.0.113.32",), RELAY,
               {"kind": "GatewayClass", "apiVersion": f"{gateway_api.GROUP}/v1",
                "metadata": {"name": "classed", "annotations": {"switchback.dev/backend": "classed/proxy"}},
                "spec": {"controllerName": "example.org/gateways"}},
               *controller("classed/proxy", Server.REQUIRES, vip("203.0.113.32")),
               *controller("classed/other", Server.REJECTS, vip("203.0.113.32")), gateway_class="classed"),
    of_gateway("plain-gateway", "pods reach it", ("203.0.113.31",), NOTHING,
               *controller("envoy-gateway-system/envoy-plain", Server.REJECTS, vip("203.0.113.31"))),
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(stage: Stage) -> Iterator[Stage]:
    with playing(stage, kube_proxy("v1.36.3"), *(one for state in STATES for one in state.objects)):
        yield stage


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_what_is_decided_on_each_distribution(cluster: Stage, state: State) -> None:
    check(cluster, state)


def test_only_what_needs_a_relay_has_one_and_all_others_are_told_why(cluster: Stage) -> None:
    wanted = {state.subject for state in STATES if state.decision == RELAY}
    cluster.eventually(
        "each is steered",
        lambda: {one["subject"] for one in cluster.steering()["subjects"] if one["steered"]} == wanted,
    )
    assert len(cluster.routes()) == len(wanted)
