"""skipper, from its own manifests: it takes the header of allowed addresses and connections without one of everybody.

The law: as in scenes.py. With a certificate it reads the header on its TLS port alone, so the load balancer sends none
on port 80. https://opensource.zalando.com/skipper/operation/operation/
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.cluster.stage import Stage
from tests.cluster.world.controller import GRPC, MANIFESTS, PROTOCOLS, Controller
from tests.cluster.world.front import WEB, turn_front
from tests.cluster.world.images import SKIPPER as IMAGE
from tests.cluster.world.serving import (
    bring_backends,
    bring_certificate,
    expect_diagnosis,
    expect_free_upgrade,
    expect_left_alone,
    expect_served,
    expect_visitors,
    open_to_visitors,
)
from tests.kit.programs import program

SKIPPER: Final = Controller(
    name="skipper",
    namespace="kube-system",
    service="skipper-ingress",
    workloads=("deployment/skipper-ingress",),
    log=("-l", "application=skipper-ingress"),
    protocols=tuple(one for one in PROTOCOLS if one != GRPC),
)
PLAIN: Final = (80,)
"""The ports on which it reads no header."""
_FILES: Final = ("rbac.yaml", "deployment.yaml", "service.yaml")
_GONE: Final = (
    ("policy/v1beta1", "PodSecurityPolicy", "hostnetwork"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "hostnetwork-psp"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "skipper-ingress-hostnetwork-psp"),
)
"""Objects of its manifests that Kubernetes no longer has, and what refers to them."""
_HEADER: Final = "-enable-proxy-protocol"


def skipper_takes_both(stage: Stage) -> None:
    """The program skipper takes its load balancer's header and does without: visitors and pods are served, no fault."""
    bring_backends(stage)
    bring_certificate(stage, SKIPPER.namespace)
    stage.kubectl("apply", "-k", str(kustomization(stage, allowed=stage.at.of(SKIPPER.name))))
    stage.kubectl("apply", "-f", str(MANIFESTS / "skipper.yaml"))
    # As the controller of its load balancers does: skipper itself writes no status.
    stage.ingress_status("skipper-pages", {"ip": stage.at.of(SKIPPER.name)})
    stage.rolled_out(*SKIPPER.workloads, namespace=SKIPPER.namespace)
    open_to_visitors(stage, SKIPPER, plain=PLAIN)
    expect_served(stage, SKIPPER)
    expect_diagnosis(stage, SKIPPER, "short-circuit-harmless", wanted=0)


def skipper_is_left_alone(stage: Stage) -> None:
    """Switchback does not steer what takes connections without a header: pods are served by the short circuit."""
    expect_left_alone(stage, SKIPPER)


def skipper_is_upgraded(stage: Stage) -> None:
    """The program skipper is rolled out under load: no request of a pod fails."""
    expect_free_upgrade(stage, SKIPPER)


def skipper_takes_no_header(stage: Stage) -> None:
    """Without the flag, and a load balancer without a header, everybody is served, and nothing is steered."""
    turn_front(stage, SKIPPER, plain=WEB)
    stage.kubectl("apply", "-k", str(kustomization(stage, allowed="")))
    stage.rolled_out(*SKIPPER.workloads, namespace=SKIPPER.namespace)
    expect_visitors(stage, SKIPPER)
    expect_left_alone(stage, SKIPPER)


def kustomization(stage: Stage, *, allowed: str) -> Path:
    """The folder of skipper's owner: its own deployment, made a Service of type LoadBalancer."""
    folder = stage.folder / SKIPPER.name
    folder.mkdir(exist_ok=True)
    for name in _FILES:
        shutil.copy(Path(program("skipper-manifests")) / name, folder)
    document = {
        "kind": "Kustomization",
        "resources": list(_FILES),
        "images": [{"name": IMAGE.name.rpartition(":")[0], "newTag": IMAGE.name.rpartition(":")[2]}],
        "patches": [
            *({"patch": json.dumps(deletion(*one))} for one in _GONE),
            {"target": {"kind": "Deployment"}, "patch": json.dumps(deployment_changes(allowed=allowed))},
            {"target": {"kind": "Service"}, "patch": json.dumps(SERVICE_CHANGES)},
        ],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(document), encoding="utf-8")
    return folder


def deletion(version: str, kind: str, name: str) -> dict[str, Any]:
    """A patch that leaves an object out."""
    namespace = {"namespace": "kube-system"} if kind == "RoleBinding" else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **namespace}, "$patch": "delete"}


SERVICE_CHANGES: Final[Sequence[Mapping[str, Any]]] = (
    {"op": "replace", "path": "/spec/type", "value": "LoadBalancer"},
    {"op": "add", "path": "/spec/externalTrafficPolicy", "value": "Local"},
    {"op": "add", "path": "/spec/ports/0/name", "value": "http"},
    {"op": "add", "path": "/spec/ports/-", "value": {"name": "https", "port": 443, "targetPort": 9443}},
)


def deployment_changes(*, allowed: str) -> list[dict[str, Any]]:
    """Two small replicas in the pods' network with a certificate, of this class alone; whose header is taken."""
    pod, container = "/spec/template/spec", "/spec/template/spec/containers/0"
    args = [
        *("-tls-cert=/tls/tls.crt", "-tls-key=/tls/tls.key", "-insecure-address=:9999"),
        *("-kubernetes-ingress-class=^skipper$", "-kubernetes-https-redirect=false"),
        *("-forwarded-headers=X-Forwarded-For", "-wait-for-healthcheck-interval=10s"),
        *((_HEADER, f"-proxy-allow-cidrs={allowed}") if allowed else ()),
    ]
    return [
        {"op": "add", "path": "/spec/replicas", "value": 2},
        *({"op": "remove", "path": f"{pod}/{key}"} for key in ("nodeSelector", "hostNetwork")),
        *({"op": "remove", "path": f"{container}/{key}"} for key in ("resources", "ports")),
        {"op": "replace", "path": f"{container}/readinessProbe/initialDelaySeconds", "value": 1},
        # In place of `-address=:9999`: the port with TLS, on which it reads the header.
        {"op": "replace", "path": f"{container}/args/4", "value": "-address=:9443"},
        *({"op": "add", "path": f"{container}/args/-", "value": one} for one in args),
        {"op": "add", "path": f"{pod}/volumes", "value": [{"name": "tls", "secret": {"secretName": "tls"}}]},
        {"op": "add", "path": f"{container}/volumeMounts", "value": [{"name": "tls", "mountPath": "/tls"}]},
    ]
