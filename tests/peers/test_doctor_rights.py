"""The doctor that cannot read everything: what could not be read is named, and is never taken for an absence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.doctor.collect.reader import REQUEST_SECONDS
from tests.kit.doctor_stage.gateways import gateway, gateway_class, http_route
from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    NO_HEADER,
    ingress,
    nginx_controller,
    node,
    point,
    service,
)
from tests.kit.doctor_stage.servers import Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import HOST, NO_RELAY, RELAY, State, differences, healthy, not_known, table, wrong
from tests.kit.networks import root
from tests.kit.slow_api import slow_api

pytestmark = pytest.mark.peer(*PEERS, "gateway-api")

__all__ = ["root", "stage"]

ABSENCES: Final = ("host-unknown", "no-hosts", "no-road")
"""Findings that claim an absence."""
HETZNER: Final = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
DNS: Final = {HOST: (BALANCER,)}
SERVED: Final = State(
    name="",
    objects=(*nginx_controller(point(BALANCER, "Proxy")), ingress(HOST, BALANCER)),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
    dns=DNS,
    expected=healthy(),
)
"""Pods are served."""
FAILING: Final = State(
    name="",
    objects=(*nginx_controller(point(BALANCER), annotations=HETZNER), ingress(HOST, BALANCER), node("hcloud://1")),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
    dns=DNS,
    expected=wrong("short-circuited"),
)
"""Pods are short-circuited."""
BY_GATEWAY: Final = State(
    name="",
    objects=(
        gateway_class(),
        gateway(HOST, BALANCER),
        http_route(HOST),
        service(
            "envoy-gateway-system/envoy",
            CONTROLLER,
            points=[point(BALANCER, "Proxy")],
            labels={"gateway.envoyproxy.io/owning-gateway-name": "main"},
        ),
    ),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
    dns=DNS,
    expected=healthy("reached"),
)
"""A host of a Gateway, whose pods are served."""
EVERYTHING: Final = (
    "configmaps", "daemonsets", "deployments", "endpointslices", "gatewayclasses", "gateways", "httproutes",
    "ingressclasses", "ingresses", "namespaces", "nodes", "services",
)  # fmt: skip
STATES: Final = (
    replace(SERVED, name="all rights", denied=("felixconfigurations",), expected=healthy("reached")),
    replace(
        SERVED,
        name="no ingresses, pods are served",
        denied=("ingresses",),
        expected=not_known("list ingresses: forbidden", untold=ABSENCES, no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="no ingresses, all hosts",
        host="",
        denied=("ingresses",),
        expected=not_known("list ingresses: forbidden", untold=(*ABSENCES, "not-needed"), no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="no services, pods are served",
        denied=("services",),
        expected=not_known("list services: forbidden", untold=ABSENCES, no_advice=NO_RELAY),
    ),
    replace(
        FAILING,
        name="no services, pods fail",
        denied=("services",),
        arguments=("--probe", "--dns", "10.96.0.10"),
        expected=wrong("header-lost", untold=ABSENCES, unseen=("list services: forbidden",)),
    ),
    replace(
        SERVED,
        name="no services, outside",
        denied=("services",),
        arguments=(),
        expected=not_known("list services: forbidden", untold=ABSENCES, no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="no ingressclasses, and no address in the status",
        objects=(*nginx_controller(point(BALANCER, "Proxy")), ingress(HOST)),
        denied=("ingressclasses",),
        expected=not_known("list ingressclasses: forbidden", untold=ABSENCES, no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="no configmaps, pods are served",
        denied=("configmaps",),
        expected=healthy("reached", unseen=("get configmaps",), no_advice=NO_RELAY),
    ),
    replace(
        FAILING,
        name="no configmaps, pods fail",
        denied=("configmaps",),
        expected=wrong("short-circuited", unseen=("get configmaps",), advice=(RELAY,)),
    ),
    replace(
        SERVED,
        name="no configmaps, outside: what the controller wants is not known",
        objects=(*nginx_controller(point(BALANCER)), ingress(HOST, BALANCER)),
        denied=("configmaps",),
        arguments=(),
        expected=not_known(
            "get configmaps ingress-nginx-controller in namespace ingress-nginx: forbidden",
            untold=("short-circuited", "short-circuit-harmless", "header-required"),
            advice=("--from - --probe",),
        ),
    ),
    replace(
        SERVED,
        name="no deployments, pods are served",
        denied=("deployments",),
        expected=healthy("reached", unseen=("list deployments.apps in namespace ingress-nginx: forbidden",)),
    ),
    replace(
        SERVED,
        name="no nodes, pods are served",
        denied=("nodes",),
        expected=healthy("reached", unseen=("list nodes: forbidden",)),
    ),
    replace(
        FAILING,
        name="no nodes, pods fail",
        denied=("nodes",),
        expected=wrong("short-circuited", unseen=("list nodes: forbidden",), advice=(RELAY,)),
    ),
    replace(
        SERVED,
        name="no daemonsets, pods are served",
        denied=("daemonsets",),
        expected=healthy("reached", unseen=("list daemonsets.apps: forbidden",)),
    ),
    replace(
        FAILING,
        name="no daemonsets, pods fail",
        denied=("daemonsets",),
        expected=wrong("short-circuited", unseen=("list daemonsets.apps: forbidden",), advice=(RELAY,)),
    ),
    replace(
        SERVED,
        name="no daemonsets, outside: whether the data plane honours ipMode is not known",
        denied=("daemonsets",),
        arguments=(),
        expected=not_known("list daemonsets.apps: forbidden", untold=("no-short-circuit", "ip-mode-ignored")),
    ),
    replace(BY_GATEWAY, name="all rights, a host of a Gateway", denied=("felixconfigurations",)),
    replace(
        BY_GATEWAY,
        name="no gateways",
        denied=("gateways",),
        expected=not_known("list gateways: forbidden", untold=ABSENCES, no_advice=NO_RELAY),
    ),
    replace(
        BY_GATEWAY,
        name="no httproutes",
        denied=("httproutes",),
        expected=not_known("list httproutes: forbidden", untold=ABSENCES, no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="a file of somebody without the right to services, judged in a pod",
        denied=("services",),
        saved=(HOST,),
        expected=not_known("list services: forbidden", untold=ABSENCES, no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="no rights, in a pod",
        denied=EVERYTHING,
        expected=not_known("list ingresses: forbidden", "list services: forbidden", untold=ABSENCES),
    ),
    replace(
        BY_GATEWAY,
        name="no gatewayclasses, and no address in the status",
        objects=(*BY_GATEWAY.objects, gateway(HOST)),
        denied=("gatewayclasses",),
        expected=not_known("list gatewayclasses: forbidden", untold=ABSENCES, no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="no configmaps, a controller without the header, outside",
        objects=(*nginx_controller(point(BALANCER), settings=NO_HEADER), ingress(HOST, BALANCER)),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
        denied=("configmaps",),
        arguments=(),
        expected=not_known("get configmaps", untold=("short-circuit-harmless",), advice=("--from - --probe",)),
    ),
)


@table(*STATES)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []


DELAY: Final = 1.0
"""Seconds for each request."""


def test_a_slow_api_server_is_asked_side_by_side(stage: Stage, tmp_path: Path) -> None:
    with stage.staged(SERVED), slow_api(stage.api, tmp_path, delay=DELAY) as slow:
        verdict = stage.ask_doctor(HOST, "--probe", kubeconfig=slow.kubeconfig)
        assert differences(verdict, healthy("reached")) == []
        # Beside the requests' own time, which a busy machine stretches as well.
        assert slow.seconds < sum(end - start for _, start, end in slow.asked) / 2


def test_a_request_without_an_answer_is_named_with_its_seconds(stage: Stage, tmp_path: Path) -> None:
    silent = "/apis/networking.k8s.io/v1/ingresses"
    with stage.staged(SERVED), slow_api(stage.api, tmp_path, silent=silent) as slow:
        verdict = stage.ask_doctor(HOST, "--probe", kubeconfig=slow.kubeconfig)
    named = f"list ingresses: GET {silent}: no answer within {REQUEST_SECONDS:g} s"
    assert differences(verdict, not_known(named, untold=ABSENCES, no_advice=NO_RELAY)) == []
