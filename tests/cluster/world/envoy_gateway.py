"""Envoy Gateway: a Gateway whose Envoys demand the header, then take both, then refuse it, by a ClientTrafficPolicy.

The law: as in scenes.py. Its chart's objects are in manifests/envoy-gateway.yaml, because no program here renders
charts; the resource definitions are its own. https://gateway.envoyproxy.io/docs/tasks/traffic/client-traffic-policy/
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from tests.cluster.acting import manifest
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

SPACE: Final = "envoy-gateway-system"
POLICY: Final = "clienttrafficpolicy/header"


def infrastructure_name(namespace: str, gateway: str) -> str:
    """The Service and Deployment of a Gateway's Envoys. internal/utils/misc.go GetHashedName of Envoy Gateway."""
    digest = hashlib.sha256(f"{namespace}/{gateway}".encode()).hexdigest()
    return f"envoy-{namespace}-{gateway}-{digest[:8]}"


GATEWAY: Final = Controller(
    name="gateway",
    namespace=SPACE,
    service=infrastructure_name("default", "gateway"),
    workloads=("deployment/envoy-gateway", f"deployment/{infrastructure_name('default', 'gateway')}"),
    log=("-l", "gateway.envoyproxy.io/owning-gateway-name=gateway", "-c", "envoy"),
    client=r'"x-forwarded-for":"(?P<client>[^"]+)"',
    gateway="gateway",
)


def gateway_is_there(stage: Stage) -> None:
    """Envoy Gateway: visitors are served, pods by no protocol, and the doctor names the policy behind it."""
    bring_backends(stage)
    stage.kubectl("apply", "--server-side", "--recursive", "-f", program("envoy-gateway-crds"))
    stage.kubectl("apply", "-f", str(MANIFESTS / "envoy-gateway.yaml"))
    stage.kubectl("wait", "job/gateway-helm-certgen", "-n", SPACE, "--for=condition=Complete", "--timeout=120s")
    stage.rolled_out(GATEWAY.workloads[0], namespace=SPACE)
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "gateway.yaml", folder=MANIFESTS, ENVOY_IMAGE=ENVOY.name))
    words = ("get", "deployment,service", "-n", SPACE, "-o", "name")
    stage.eventually("its Envoys", lambda: stage.kubectl(*words).count(GATEWAY.service) == 2)
    stage.rolled_out(GATEWAY.workloads[1], namespace=SPACE)
    open_to_visitors(stage, GATEWAY)
    stage.kubectl("wait", "gateway/gateway", "--for=condition=Programmed", "--timeout=120s")
    expect_fault(stage, GATEWAY, "ClientTrafficPolicy default/header")


def gateway_is_cured(stage: Stage) -> None:
    """With Switchback pods speak every protocol to the Gateway's hosts; Envoy's log has their own address."""
    expect_cure(stage, GATEWAY)


def gateway_is_upgraded(stage: Stage) -> None:
    """Envoy Gateway and its Envoys are rolled out under load: no request of a pod fails."""
    expect_free_upgrade(stage, GATEWAY)


def gateway_takes_both(stage: Stage) -> None:
    """The policy makes the header optional: the Gateway is let go, and pods are served without us."""
    change_policy(stage, "add", "/spec/proxyProtocol/optional", value=True)
    expect_left_alone(stage, GATEWAY)


def gateway_refuses_the_header(stage: Stage) -> None:
    """Without the policy, and a load balancer without a header, everybody is served, and nothing is steered."""
    stage.kubectl("delete", POLICY)
    turn_front(stage, GATEWAY, plain=WEB)
    expect_visitors(stage, GATEWAY)
    expect_left_alone(stage, GATEWAY)


def gateway_demands_it_again(stage: Stage) -> None:
    """The policy comes back: the Gateway is steered again without help."""
    turn_front(stage, GATEWAY, plain=())
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "gateway.yaml", folder=MANIFESTS, ENVOY_IMAGE=ENVOY.name))
    expect_cure(stage, GATEWAY)


def change_policy(stage: Stage, operation: str, path: str, **value: bool) -> None:
    """A patch of the ClientTrafficPolicy."""
    change = [{"op": operation, "path": path, **value}]
    stage.kubectl("patch", POLICY, "--type=json", "-p", json.dumps(change))
