"""Steps of the scene: a registry behind the cluster's own ingress, from which the kubelet of each node pulls.

The law: as in scenes.py. A pull is a pod whose image has the registry's public hostname, with the policy Always; its
outcome is what the kubelet writes into the pod's status.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cluster.acting import manifest, seen_by_nginx
from tests.cluster.nodes.configs import PAUSE
from tests.cluster.nodes.images import make_image
from tests.cluster.nodes.node import Node
from tests.cluster.nodes.registry import REGISTRY
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.publishing import getent, hosts_file
from tests.deploy.image import buildah

IMAGE: Final = f"{REGISTRY}/pulled:1"
PULL_SECONDS: Final = 90.0
_SERVICE: Final = "registry.registry"
_LAYER: Final = 8_000_000
"""Octets of the image's own layer, which no node has before."""
_NO_HEADER: Final = ("connection reset by peer", ": EOF")
"""What a client sees of a controller that waits for the header in vain."""
_FAILURES: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})


@dataclass(frozen=True)
class Pull:
    """The outcome of a pull."""

    runs: bool
    told: str = ""
    """The kubelet's message, if it failed."""


def node_is_cut_off(stage: Stage) -> None:
    """Before: no node pulls from a registry behind the ingress; its name leads to the load balancer's address."""
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "registry.yaml"))
    stage.rolled_out("deployment/registry", namespace="registry")
    stage.patch_status("ingress", "registry", "-n", "registry", entries=stage.public())
    push(stage)
    stage.before["hosts"] = hosts_file(stage)
    no_node_pulls(stage)


def cure_of_pods_is_none_of_nodes(stage: Stage) -> None:
    """With the installation alone, pods reach the registry by its name, and still no node pulls from it."""
    stage.eventually("the relay's address", lambda: stage.dig(REGISTRY) == [stage.relay_address()], seconds=60)
    said = stage.curl(f"https://{REGISTRY}/v2/pulled/tags/list")
    stage.expect("the registry, from a pod", saw=said, wanted=(0, '{"name":"pulled","tags":["1"]}'))
    no_node_pulls(stage)


def every_node_pulls(stage: Stage) -> None:
    """With node-hosts, each node has the registry's name, pulls the image by it, and runs the pod."""
    relay = stage.relay_address()
    for node in stage.nodes:
        stage.eventually(f"the name on {node.name}", lambda n=node: getent(stage, REGISTRY, n) == relay, seconds=60)  # type: ignore[misc]
        begun = time.monotonic()
        stage.expect(f"a pod on {node.name}", saw=pull(stage, node), wanted=Pull(runs=True))
        stage.say(f"{node.name} pulled {IMAGE} and runs it after {time.monotonic() - begun:.1f} s")
    line = seen_by_nginx(stage, f'"{REGISTRY}" 200 https /v2/pulled/blobs/')
    stage.say(f"nginx: {line}")


def nodes_are_cut_off_again(stage: Stage) -> None:
    """After the removal each node fails again to pull, though it has the image."""
    no_node_pulls(stage)


def no_node_pulls(stage: Stage) -> None:
    """Each node has the public address for the registry's name, and its kubelet reports a failed pull."""
    for node in stage.nodes:
        stage.expect(f"the name on {node.name}", saw=getent(stage, REGISTRY, node), wanted=stage.at.public)
        outcome = pull(stage, node)
        # Any other fault, such as an unknown authority, would be the scene's.
        if outcome.runs or not any(text in outcome.told for text in _NO_HEADER):
            raise StepFailed(f"{node.name} and {IMAGE}: {outcome}")
        stage.say(f"{node.name}: {outcome.told}")


def push(stage: Stage) -> None:
    """Push an image to the registry's Service, past the ingress; its layer is on no node."""
    # The name is this run's own, because the storage of buildah is the machine's.
    local, payload = f"localhost/pulled:{os.getpid()}", stage.folder / "payload"
    payload.write_bytes(os.urandom(_LAYER))
    make_image(local, base=PAUSE, files={Path(payload): "/payload"}, entrypoint=["/pause"])
    try:
        buildah(
            "push", "--quiet", "--tls-verify=false", local, f"docker://{_SERVICE}:5000/pulled:1", inside=there(stage)
        )
    finally:
        buildah("rmi", local)


def there(stage: Stage) -> list[str]:
    """The command line in front of a command that is to run in the node's network, and to know the registry's Service.

    By a name, because buildah reads no IPv6 address in the name of an image.
    """
    hosts = stage.folder / "registry-hosts"
    address = stage.get("service", "registry", "-n", "registry")["spec"]["clusterIP"]
    hosts.write_text(f"{address} {_SERVICE}\n", encoding="utf-8")
    # In mounts of its own.
    script = f'mount --bind {hosts} /etc/hosts && exec "$@"'
    network = ("nsenter", f"--target={stage.node.pid}", "--net")
    return ["env", "NO_PROXY=*", "unshare", "--mount", "sh", "-c", script, "sh", *network]


def pull(stage: Stage, node: Node) -> Pull:
    """Run a pod of the image on a node until it runs or its pull has failed, and delete it."""
    name = f"pulled-{node.name}"
    stage.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "nodeName": node.name,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "pulled", "image": IMAGE, "imagePullPolicy": "Always"}],
            },
        }
    )
    outcomes: list[Pull] = []

    def ended() -> bool:
        outcomes.extend(filter(None, [outcome(stage.get("pod", name))]))
        return bool(outcomes)

    stage.eventually(f"an outcome of the pull on {node.name}", ended, seconds=PULL_SECONDS)
    stage.kubectl("delete", "pod", name, "--wait")
    return outcomes[0]


def outcome(pod: Mapping[str, Any]) -> Pull | None:
    """The outcome in a pod's status; None as long as there is none."""
    for container in pod.get("status", {}).get("containerStatuses", ()):
        waiting = container["state"].get("waiting", {})
        if "running" in container["state"]:
            return Pull(runs=True)
        if waiting.get("reason") in _FAILURES:
            return Pull(runs=False, told=f"{waiting['reason']}: {waiting.get('message', '')}")
    return None
