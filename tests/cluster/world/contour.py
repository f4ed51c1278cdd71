"""Contour and Envoy, from Contour's own manifests: the fault, the cure, every protocol, an upgrade under load.

The law: as in scenes.py. Nothing of Contour is configured but what its owner would: the flag that demands the header,
the delay of a drain, and the images' names. https://projectcontour.io/docs/1.33/config/
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from tests.cluster.acting import manifest, under_load
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.diagnosing import findings
from tests.cluster.steps.steering import until_steered
from tests.cluster.world.front import start_front, visit_front
from tests.cluster.world.images import ENVOY
from tests.kit.programs import program

NAME: Final = "contour"
"""The class, the controller and the zone of its hosts."""
SPACE: Final = "projectcontour"
PAGES: Final = "pages.contour.example.org"
GRPC: Final = "grpc.contour.example.org"
MANIFESTS: Final = Path(__file__).parent / "manifests"
SPOKEN: Final = {
    "HTTP/1.1": ("http1", f"http://{PAGES}/"),
    "HTTPS": ("http1", f"https://{PAGES}/"),
    "HTTP/2": ("http2", f"https://{PAGES}/"),
    "gRPC": ("grpc", f"https://{GRPC}/"),
    "WebSocket": ("ws", f"https://{PAGES}/ws"),
}
"""The command and URL for each protocol."""
_LISTENERS: Final = ("envoy-service-http", "envoy-service-https", "stats", "health", "http")
"""Of Contour's flags, those with an address to listen on, besides the one in its manifests."""


def contour_is_there(stage: Stage) -> None:
    """Contour from its own manifests: visitors are served, pods by no protocol, and the doctor names the setting."""
    stage.kubectl("apply", "--server-side", "-k", str(kustomization(stage)))
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "speaker.yaml", folder=MANIFESTS))
    pair = [f"--cert={stage.folder}/tls.crt", f"--key={stage.folder}/tls.key"]
    stage.kubectl("create", "secret", "tls", "tls", *pair)
    stage.kubectl("apply", "-f", str(MANIFESTS / "contour.yaml"))
    stage.rolled_out("deployment/contour", "daemonset/envoy", namespace=SPACE)
    stage.rolled_out("deployment/speaker", namespace="default")
    start_front(stage, NAME, namespace=SPACE, service="envoy")
    stage.kubectl("wait", "pod/asking", "--for=condition=Ready", "--timeout=120s")
    wanted = f"hello from {PAGES} to {stage.at.of(NAME)}"
    stage.eventually("a visitor's page", lambda: visit_front(stage, NAME, f"https://{PAGES}/") == wanted, seconds=90)
    stage.say(f"a visitor at {stage.at.of(NAME)}: {wanted}")
    expect_fault(stage)
    found = findings(stage, PAGES, wanted=1)
    told = found.get("short-circuited")
    if told is None:
        raise StepFailed(f"the doctor found {sorted(found)}")
    stage.say("\n".join([told["text"], *told["evidence"]]))
    stage.expect("the setting in the evidence", saw="use-proxy-protocol" in json.dumps(told), wanted=True)


def contour_is_cured(stage: Stage) -> None:
    """With Switchback pods speak every protocol to Contour's hosts; Envoy's log has their own address."""
    until_steered(stage, NAME)
    client = stage.client_address("asking")
    for protocol in SPOKEN:
        stage.eventually(f"{protocol} by name", lambda one=protocol: speak(stage, one)[0] == 0, seconds=60)  # type: ignore[misc]
        stage.say(f"{protocol}: {speak(stage, protocol)[1]}")
    stage.expect("the address that the backend was told", saw=speak(stage, "HTTPS")[1].split()[-1], wanted=client)
    stage.eventually("the address in Envoy's log", lambda: client in envoy_log(stage), seconds=30)
    wanted = f"hello from {PAGES} to {stage.at.of(NAME)}"
    stage.expect("a visitor's page", saw=visit_front(stage, NAME, f"https://{PAGES}/"), wanted=wanted)


def contour_is_upgraded(stage: Stage) -> None:
    """Contour and Envoy are rolled out under load: no request of a pod fails."""

    def act() -> None:
        for workload in ("deployment/contour", "daemonset/envoy"):
            stage.kubectl("rollout", "restart", workload, "-n", SPACE)
            stage.rolled_out(workload, namespace=SPACE)

    said = under_load(stage, "paced-http", f"http://{PAGES}/", act=act)
    stage.expect("results of requests", saw=set(said), wanted={"ok"})


def expect_fault(stage: Stage) -> None:
    """A pod is served by none of the protocols."""
    # Until kube-proxy has the address, pods reach the load balancer.
    stage.eventually("the short circuit", lambda: speak(stage, "HTTP/1.1")[0] != 0, seconds=60)
    for protocol in SPOKEN:
        status, said = speak(stage, protocol)
        stage.say(f"{protocol}: {said}")
        if status == 0:
            raise StepFailed(f"{protocol} works: there is no fault to fix")


def speak(stage: Stage, protocol: str) -> tuple[int, str]:
    """Ask by one protocol from the pod `asking`: exit status and answer."""
    command, url = SPOKEN[protocol]
    return stage.client("/bin/speaker", command, url, "/client/ca.crt", pod="asking")


def envoy_log(stage: Stage) -> str:
    """The access log of every Envoy."""
    return stage.kubectl("logs", "-n", SPACE, "-l", "app=envoy", "-c", "envoy", "--tail=200")


def kustomization(stage: Stage) -> Path:
    """The folder of Contour's owner: its own example, the flag, and a version of Envoy."""
    folder = stage.folder / NAME
    # kustomize reads no file outside of its folder.
    shutil.copytree(program("contour-crds"), folder, dirs_exist_ok=True)
    args = "/spec/template/spec/containers/0/args"
    flags = [{"op": "add", "path": f"{args}/-", "value": "--use-proxy-protocol"}]
    if stage.at.record == "AAAA":
        # Its manifests listen on addresses of IPv4 alone.
        flags += [{"op": "replace", "path": f"{args}/2", "value": "--xds-address=::"}]
        flags += [{"op": "add", "path": f"{args}/-", "value": f"--{one}-address=::"} for one in _LISTENERS]
    # By default Envoy ends before the first node or load balancer knows that it leaves.
    command = "/spec/template/spec/containers/0/lifecycle/preStop/exec/command/-"
    drain = [{"op": "add", "path": command, "value": "--drain-delay=10s"}]
    document = {
        "kind": "Kustomization",
        "resources": sorted(one.name for one in folder.glob("0*.yaml")),
        "images": [{"name": ENVOY.name.partition(":")[0], "newTag": ENVOY.name.partition(":")[2]}],
        "patches": [
            {"target": {"kind": "Deployment", "name": "contour"}, "patch": json.dumps(flags)},
            {"target": {"kind": "DaemonSet", "name": "envoy"}, "patch": json.dumps(drain)},
        ],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(document), encoding="utf-8")
    return folder
