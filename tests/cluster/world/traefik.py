"""Traefik 3: an entry point that trusts addresses takes connections with the header and without, so pods need no help.

The law: as in scenes.py. Nothing demands the header at Traefik; without `proxyProtocol` it is refused, also of a load
balancer. https://doc.traefik.io/traefik/reference/install-configuration/entrypoints/
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.cluster.stage import Stage
from tests.cluster.world.controller import MANIFESTS, Controller
from tests.cluster.world.front import WEB, turn_front, visit_front
from tests.cluster.world.serving import (
    bring_backends,
    expect_diagnosis,
    expect_free_upgrade,
    expect_left_alone,
    expect_served,
    expect_visitors,
    open_to_visitors,
)
from tests.kit.programs import program

TRAEFIK: Final = Controller(
    name="traefik",
    namespace="traefik",
    service="traefik",
    workloads=("deployment/traefik",),
    log=("-l", "app=traefik"),
)
_RIGHTS: Final = "kubernetes-crd-rbac.yml"


def traefik_takes_both(stage: Stage) -> None:
    """Traefik that trusts its load balancer's header: visitors and pods are served, and the doctor finds no fault."""
    bring_backends(stage)
    stage.kubectl("create", "namespace", TRAEFIK.namespace)
    stage.kubectl("apply", "-k", str(kustomization(stage, trusted=stage.at.of(TRAEFIK.name))))
    stage.kubectl("apply", "-f", str(MANIFESTS / "traefik-hosts.yaml"))
    stage.rolled_out(*TRAEFIK.workloads, namespace=TRAEFIK.namespace)
    open_to_visitors(stage, TRAEFIK)
    expect_served(stage, TRAEFIK)
    expect_diagnosis(stage, TRAEFIK, "takes-both", wanted=0)


def traefik_is_left_alone(stage: Stage) -> None:
    """Switchback does not steer what takes both: pods are served by the short circuit, as who they are."""
    expect_left_alone(stage, TRAEFIK)


def traefik_is_upgraded(stage: Stage) -> None:
    """Traefik is rolled out under load: no request of a pod fails."""
    expect_free_upgrade(stage, TRAEFIK)


def traefik_refuses_the_header(stage: Stage) -> None:
    """Without `proxyProtocol` visitors are refused until the load balancer sends no header; pods never are."""
    stage.kubectl("apply", "-k", str(kustomization(stage, trusted="")))
    stage.rolled_out(*TRAEFIK.workloads, namespace=TRAEFIK.namespace)
    url = f"http://{TRAEFIK.pages}/"
    stage.eventually("no page for a visitor", lambda: "hello" not in visit_front(stage, TRAEFIK, url), seconds=30)
    expect_served(stage, TRAEFIK)
    turn_front(stage, TRAEFIK, plain=WEB)
    expect_visitors(stage, TRAEFIK)
    expect_left_alone(stage, TRAEFIK)


def kustomization(stage: Stage, *, trusted: str) -> Path:
    """The folder of Traefik's owner: its documentation's rights, and whose header the entry points use."""
    folder = stage.folder / TRAEFIK.name
    folder.mkdir(exist_ok=True)
    for source in (Path(program("traefik-crds")) / _RIGHTS, MANIFESTS / "traefik.yaml"):
        (folder / source.name).write_bytes(source.read_bytes())
    document = format_kustomization(TRAEFIK.namespace, trusted=trusted)
    (folder / "kustomization.yaml").write_text(json.dumps(document), encoding="utf-8")
    return folder


def format_kustomization(namespace: str, *, trusted: str) -> dict[str, Any]:
    """The account that has the rights is in this namespace; without a trusted address no entry point takes a header."""
    moved = [{"op": "replace", "path": "/subjects/0/namespace", "value": namespace}]
    args = [f"--entrypoints.{name}.proxyprotocol.trustedips={trusted}" for name in ("web", "websecure") if trusted]
    added = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": one} for one in args]
    patches = [{"target": {"kind": "ClusterRoleBinding"}, "patch": json.dumps(moved)}]
    if added:
        patches.append({"target": {"kind": "Deployment", "name": "traefik"}, "patch": json.dumps(added)})
    return {"kind": "Kustomization", "resources": [_RIGHTS, "traefik.yaml"], "patches": patches}
