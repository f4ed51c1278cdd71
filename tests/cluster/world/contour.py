"""Contour and Envoy, from Contour's own manifests: the fault, the cure, every protocol, an upgrade under load.

The law: as in scenes.py. Nothing of Contour is configured but what its owner would: the flag that demands the header,
the delay of a drain, and the images' names. https://projectcontour.io/docs/1.33/config/
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from tests.cluster.stage import Stage
from tests.cluster.world.controller import MANIFESTS, Controller
from tests.cluster.world.front import WEB, turn_front
from tests.cluster.world.images import ENVOY
from tests.cluster.world.serving import (
    bring_backends,
    expect_cure,
    expect_fault,
    expect_free_upgrade,
    expect_left_alone,
    expect_visitors,
    open_to_visitors,
)
from tests.kit.programs import program

CONTOUR: Final = Controller(
    name="contour",
    namespace="projectcontour",
    service="envoy",
    workloads=("deployment/contour", "daemonset/envoy"),
    log=("-l", "app=envoy", "-c", "envoy"),
    client=r'"(?P<client>[^"]+)" "Go-http-client',
)
_LISTENERS: Final = ("envoy-service-http", "envoy-service-https", "stats", "health", "http")
"""Of Contour's flags, those with an address to listen on, besides the one in its manifests."""


def contour_is_there(stage: Stage) -> None:
    """Contour from its own manifests: visitors are served, pods by no protocol, and the doctor names the setting."""
    bring_backends(stage)
    stage.kubectl("apply", "--server-side", "-k", str(kustomization(stage)))
    stage.kubectl("apply", "-f", str(MANIFESTS / "contour.yaml"))
    stage.rolled_out(*CONTOUR.workloads, namespace=CONTOUR.namespace)
    open_to_visitors(stage, CONTOUR)
    expect_fault(stage, CONTOUR, "use-proxy-protocol")


def contour_is_cured(stage: Stage) -> None:
    """With Switchback pods speak every protocol to Contour's hosts; Envoy's log has their own address."""
    expect_cure(stage, CONTOUR)


def contour_is_upgraded(stage: Stage) -> None:
    """Contour and Envoy are rolled out under load: no request of a pod fails."""
    expect_free_upgrade(stage, CONTOUR)


def contour_refuses_the_header(stage: Stage) -> None:
    """Without the flag, and a load balancer without a header, everybody is served, and nothing is steered."""
    stage.kubectl("apply", "--server-side", "-k", str(kustomization(stage, demands=False)))
    stage.rolled_out(*CONTOUR.workloads, namespace=CONTOUR.namespace)
    turn_front(stage, CONTOUR, plain=WEB)
    expect_visitors(stage, CONTOUR)
    expect_left_alone(stage, CONTOUR)


def kustomization(stage: Stage, *, demands: bool = True) -> Path:
    """The folder of Contour's owner: its own example, the flag that demands the header, and a version of Envoy."""
    folder = stage.folder / CONTOUR.name
    # kustomize reads no file outside of its folder.
    shutil.copytree(program("contour-crds"), folder, dirs_exist_ok=True)
    args = "/spec/template/spec/containers/0/args"
    flags = [{"op": "add", "path": f"{args}/-", "value": "--use-proxy-protocol"}] if demands else []
    if any(at.family == 6 for at in stage.cluster.at):  # the family
        # Its manifests listen on addresses of IPv4 alone.
        flags += [{"op": "replace", "path": f"{args}/2", "value": "--xds-address=::"}]
        flags += [{"op": "add", "path": f"{args}/-", "value": f"--{one}-address=::"} for one in _LISTENERS]
    # By default Envoy ends before the first node or load balancer knows that it leaves.
    command = "/spec/template/spec/containers/0/lifecycle/preStop/exec/command/-"
    drain = [{"op": "add", "path": command, "value": "--drain-delay=10s"}]
    families = [{"op": "add", "path": "/spec/ipFamilyPolicy", "value": "PreferDualStack"}]
    document = {
        "kind": "Kustomization",
        "resources": sorted(one.name for one in folder.glob("0*.yaml")),
        "images": [{"name": ENVOY.name.partition(":")[0], "newTag": ENVOY.name.partition(":")[2]}],
        "patches": [
            {"target": {"kind": kind, "name": name}, "patch": json.dumps(patch)}
            for kind, name, patch in (
                ("Deployment", "contour", flags),
                ("DaemonSet", "envoy", drain),
                ("Service", "envoy", families),
            )
            if patch
        ],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(document), encoding="utf-8")
    return folder
