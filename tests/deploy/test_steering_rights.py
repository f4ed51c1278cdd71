"""All three programs with their own accounts' tokens, as deploy/ grants them: a class is steered, reached and let go.

The stage has a real API server, EndpointSlices of the control plane, kube-proxy, and nginx that demands the header.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deploy.calls import account
from tests.deploy.manifests import INSTALLATION, render
from tests.deploy.putting import put, take_away
from tests.kit.doctor_stage.objects import KUBE_PROXY
from tests.kit.doctor_stage.servers import Server
from tests.kit.networks import root
from tests.kit.operate_stage.objects import BALANCER, OWN, WEB, ingress, ingress_class, pod, service, vip
from tests.kit.operate_stage.stage import PEERS, Running, Stage, annotation, stage

pytestmark = pytest.mark.peer(*PEERS, "kubectl")

__all__ = ["root", "stage"]

RIGHTS: Final = frozenset({"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
PROGRAMS: Final = ("dnsproxy", "relay", "operate")
HOST: Final = "app.example.org"
LABELS: Final = {"app": "controller"}
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{OWN}/leases/switchback-operate"


@pytest.fixture
def running(stage: Stage, tmp_path: Path) -> Iterator[Running]:
    """The programs with their own tokens, and one class whose controller demands the header."""
    rights = [one for one in render(INSTALLATION) if one["kind"] in RIGHTS]
    stage.create_namespaces(OWN)
    with stage.network.entered():
        put(stage.api, rights)
        for name in PROGRAMS:
            stage.kubeconfigs[name] = account(stage.api, OWN, name).write_kubeconfig(tmp_path / name)
    try:
        with stage.cluster() as programs:
            stage.put(KUBE_PROXY, *controller(), ingress_class("nginx"))
            stage.put(ingress("shop", HOST, "nginx", points=vip(BALANCER)))
            yield programs
    finally:
        stage.kubeconfigs.clear()
        with stage.network.entered():
            take_away(stage.api, rights)


def controller() -> list[dict[str, Any]]:
    return [
        pod("controller", "ingress-nginx", LABELS, Server.REQUIRES.ipv4),
        service("controller", "ingress-nginx", WEB, selector=LABELS, kind="LoadBalancer", points=vip(BALANCER)),
    ]


def refusals(programs: Running) -> list[str]:
    """The log lines about rights that are missing."""
    lines = (line for name in PROGRAMS for line in programs.log(name).splitlines())
    return [line for line in lines if "forbidden" in line.lower() or "cannot make an Event" in line]


def test_with_its_own_rights_each_program_does_its_part(stage: Stage, running: Running) -> None:
    stage.eventually("steered", lambda: bool(stage.subject().get("steered")))
    (name,) = stage.routes()
    route = stage.routes()[name]
    assert name == "relay-nginx"
    assert annotation(route, "relay-to") == "ingress-nginx/controller"
    assert annotation(route, "for") == "ingressclass/nginx"
    assert route["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "switchback-operate"
    address = route["spec"]["clusterIP"]
    stage.eventually("answered with the relay", lambda: address in stage.dig(HOST))
    assert stage.curl(HOST) == "200"
    assert stage.request("GET", LEASE)["spec"]["holderIdentity"]
    stage.eventually("an Event", lambda: ("Steered", "nginx") in {event[:2] for event in stage.events()})
    assert refusals(running) == []
    # Pods reach the load balancer itself from now on.
    stage.set_status(controller()[1], vip(BALANCER, mode="Proxy"))
    stage.eventually("let go", lambda: not stage.subject().get("steered", True))
    stage.eventually("an Event", lambda: ("LetGo", "nginx") in {event[:2] for event in stage.events()})
    assert annotation(stage.routes()[name], "released")
    assert refusals(running) == []
