"""Steps of the scene: a whole load balancer address for a pod, in both directions.

The law: as in steps.py. The outside is a separate network with one route in, to the load balancer's address, so a
packet that still has the pod's address gets no answer there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.cluster.images import WITH_NFTABLES
from tests.cluster.outside import Outside, configure, inside, pid_of, start_outside
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.texts import POD_RANGE, SERVICE_RANGE
from tests.deploy.manifests import DEPLOY
from tests.kit.programs import program

ADDRESS: Final = "198.18.9.10"
"""An address of the load balancer, for one pod."""
OUTSIDE: Final = "198.18.8.2"
EDGE: Final = "198.18.8.1"
"""The node's address on the link to the outside."""
WORLD: Final = Outside("outside", EDGE, [OUTSIDE])
PORT: Final = 8000
SPACE: Final = "switchback-wholeip"
TABLE: Final = "switchback_wholeip"
ANSWER: Final = """
import socketserver, sys

class Peer(socketserver.StreamRequestHandler):
    def handle(self):
        for _ in self.rfile:
            self.wfile.write(f"{self.client_address[0]}\\n".encode())

socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("", int(sys.argv[1])), Peer).serve_forever()
"""
"""A server that answers each request on a connection with the client's address."""
ASK: Final = """
import socket, sys

with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as connection:
    answers = connection.makefile()
    for _ in sys.stdin:
        connection.sendall(b"?\\n")
        print(answers.readline().strip(), flush=True)
"""
"""A client that sends a request for each line of input, and prints each answered address."""

POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "machine", "labels": {"app": "machine"}},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "machine",
                "image": "localhost/tools:1",
                "imagePullPolicy": "Never",
                "command": ["python3", "-c", ANSWER, str(PORT)],
                # The kubelet probes the pod's own address, from the node.
                "readinessProbe": {
                    "tcpSocket": {"port": PORT},
                    "periodSeconds": 1,
                    # A busy machine may delay one reply; a dropped packet fails every time.
                    "timeoutSeconds": 3,
                    "failureThreshold": 2,
                },
            }
        ],
    },
}
SERVICE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "machine",
        "labels": {"service.kubernetes.io/service-proxy-name": "cozy-proxy"},
        "annotations": {"networking.cozystack.io/wholeIP": "true"},
    },
    # A Service must have a port; the annotation extends it to all ports.
    "spec": {"type": "LoadBalancer", "selector": {"app": "machine"}, "ports": [{"port": 65535}]},
}


def address_is_the_pods(stage: Stage) -> None:
    """The component wholeip: an address reaches a pod, whose own traffic has that address; probes still work."""
    make_outside(stage)
    stage.apply(POD)
    stage.apply(SERVICE)
    status = {"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS, "ipMode": "VIP"}]}}}
    stage.kubectl("patch", "service", "machine", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    stage.kubectl("wait", "pod/machine", "--for=condition=Ready", "--timeout=120s")
    stage.expect("before, the answer to the outside", saw=from_outside(stage), wanted="")
    stage.before["leaves as"] = from_pod(stage, "machine", OUTSIDE)
    # A CNI masquerades its pods, or leaves that to another program.
    stage.expect("before, the source address outside", saw=stage.before["leaves as"] in {EDGE, ""}, wanted=True)
    stage.before["ready since"] = ready_since(stage)
    stage.kubectl("apply", "-k", str(kustomization(stage)))
    stage.rolled_out("daemonset/wholeip", namespace=SPACE)
    lasted = stage.eventually("an answer to the outside", lambda: from_outside(stage), seconds=60)
    stage.say(f"{ADDRESS} answers {lasted:.1f} s after its agent is ready")
    stage.say(stage.kubectl("exec", "-n", SPACE, "daemonset/wholeip", "--", "wholeip", "status"))
    expect_all_ways(stage)


def rules_outlive_agents(stage: Stage) -> None:
    """Stopped agents leave their rules: a connection survives, new ones work, and the same with agents again."""
    before = rules(stage)
    with asking_from_outside(stage) as connection:
        stage.expect("a connection", saw=ask_again(connection), wanted=OUTSIDE)
        stage.kubectl("delete", "daemonset", "wholeip", "-n", SPACE, "--cascade=foreground")
        stage.expect("agents", saw=stage.get("pods", "-n", SPACE)["items"], wanted=[])
        stage.expect("the rules", saw=rules(stage), wanted=before)
        stage.expect("the same connection", saw=ask_again(connection), wanted=OUTSIDE)
        expect_all_ways(stage)
        stage.kubectl("apply", "-k", str(kustomization(stage)))
        stage.rolled_out("daemonset/wholeip", namespace=SPACE)
        stage.expect("the rules, with an agent again", saw=rules(stage), wanted=before)
        stage.expect("the same connection", saw=ask_again(connection), wanted=OUTSIDE)
    stage.say("\n".join(line for line in before.splitlines() if ADDRESS in line))
    stage.expect("the time since which the pod is ready", saw=ready_since(stage), wanted=stage.before["ready since"])
    stage.say(f"the kubelet found the pod ready all the time, since {ready_since(stage)}")


def kustomization(stage: Stage) -> Path:
    """The folder of an owner who uses the image with nft only for the agents, as in deploy/README.md."""
    folder = stage.folder / "wholeip"
    folder.mkdir(exist_ok=True)
    name, _, tag = WITH_NFTABLES.rpartition(":")
    networks = {"name": "WHOLEIP_CLUSTER_NETWORK", "value": f"{POD_RANGE} {SERVICE_RANGE}"}
    add = [{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": networks}]
    document = {
        "kind": "Kustomization",
        "components": [os.path.relpath(DEPLOY / "components" / "wholeip", folder.resolve())],
        "images": [{"name": "localhost/switchback", "newName": name, "newTag": tag}],
        "patches": [{"target": {"kind": "DaemonSet", "name": "wholeip"}, "patch": json.dumps(add)}],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(document), encoding="utf-8")
    return folder


def make_outside(stage: Stage) -> None:
    """A network with a server in it, a link to the node, and a route to the load balancer's address."""
    start_outside(stage, WORLD, sys.executable, "-c", ANSWER, str(PORT))
    configure(pid_of(stage, WORLD), f"route add {ADDRESS} via {EDGE}")


def expect_all_ways(stage: Stage) -> None:
    """The addresses that the peers see, asked again."""
    pod, client = str(stage.get("pod", "machine")["status"]["podIP"]), stage.client_address()
    asked = [sys.executable, "-c", ASK, pod, str(PORT)]
    from_node = subprocess.run(stage.node.inside(*asked), input="\n", capture_output=True, text=True, check=False)
    saw = {
        f"outside to {ADDRESS}": from_outside(stage),
        f"machine to outside {OUTSIDE}": from_pod(stage, "machine", OUTSIDE),
        f"client to {ADDRESS}": from_pod(stage, "client", ADDRESS),
        f"client to pod {pod}": from_pod(stage, "client", pod),
    }
    stage.expect("the addresses seen", saw=list(saw.values()), wanted=[OUTSIDE, ADDRESS, client, client])
    node = from_node.stdout.strip()
    if f" {node}/" not in stage.node.run(program("ip"), "-4", "-oneline", "addr").stdout:
        raise StepFailed(f"node to pod {pod}: seen as {node!r}, {from_node.stderr}")
    stage.say("\n".join(f"{way}: seen as {who}" for way, who in (saw | {f"node to pod {pod}": node}).items()))


def from_outside(stage: Stage) -> str:
    """The client's address as seen by the pod; empty without an answer."""
    with asking_from_outside(stage) as connection:
        return ask_again(connection)


def asking_from_outside(stage: Stage) -> subprocess.Popen[str]:
    """A connection from there to the pod, open until its input ends."""
    command = inside(stage, WORLD, sys.executable, "-c", ASK, ADDRESS, str(PORT))
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def ask_again(connection: subprocess.Popen[str]) -> str:
    """One more question on a connection; empty if it has ended."""
    assert connection.stdin is not None
    assert connection.stdout is not None
    try:
        connection.stdin.write("\n")
        connection.stdin.flush()
    except BrokenPipeError:
        return ""
    return connection.stdout.readline().strip()


def from_pod(stage: Stage, name: str, address: str) -> str:
    """The pod's address as seen there; empty without an answer."""
    words = ["exec", "--stdin", name, "--", "python3", "-c", ASK, address, str(PORT)]
    return stage.node.kubectl(*words, given="\n", check=False).stdout.strip()


def ready_since(stage: Stage) -> str:
    """The time since which the kubelet has found the pod ready without interruption."""
    conditions = {one["type"]: one for one in stage.get("pod", "machine")["status"]["conditions"]}
    stage.expect("the pod's readiness", saw=conditions["Ready"]["status"], wanted="True")
    return str(conditions["Ready"]["lastTransitionTime"])


def rules(stage: Stage) -> str:
    """Our table in the kernel, without its counters; empty if it does not exist."""
    nft = program("nft")
    if f"table inet {TABLE}" not in stage.node.run(nft, "list", "tables").stdout.splitlines():
        return ""
    return stage.node.run(nft, "--stateless", "list", "table", "inet", TABLE).stdout
