"""Steps of the scene: a whole load balancer address for a pod, in both directions.

The law: as in scenes.py. The outside is a separate network with one route in, to the load balancer's address, so a
packet that still has the pod's address gets no answer there. That route leads to the pod's node, and once to another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.cluster.nodes.images import WITH_NFTABLES
from tests.cluster.nodes.link import add_routes
from tests.cluster.nodes.node import Node
from tests.cluster.plan import BRIDGE
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.outside import Outside, inside, pid_of, start_outside
from tests.deploy.manifests import DEPLOY
from tests.kit.programs import program

WORLD: Final = "outside"
PORT: Final = 8000
SPACE: Final = "switchback-wholeip"
TABLE: Final = "switchback_wholeip"
ANSWER: Final = """
import socket, socketserver, sys

class Peer(socketserver.StreamRequestHandler):
    def handle(self):
        for _ in self.rfile:
            self.wfile.write(f"{self.client_address[0].removeprefix('::ffff:')}\\n".encode())

class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = True

Server(("::", int(sys.argv[1])), Peer).serve_forever()
"""
"""A server in both families that answers each request on a connection with the client's address."""
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
    "spec": {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "selector": {"app": "machine"},
        "ports": [{"port": 65535}],
    },
}


def address_is_the_pods(stage: Stage) -> None:
    """The component wholeip: an address reaches a pod, whose own traffic has that address; probes still work."""
    make_outside(stage)
    stage.apply({**POD, "spec": {**POD["spec"], "nodeSelector": {"kubernetes.io/hostname": home(stage).name}}})
    stage.apply(SERVICE)
    status = {"status": {"loadBalancer": {"ingress": [{"ip": stage.at.whole, "ipMode": "VIP"}]}}}
    stage.kubectl("patch", "service", "machine", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    stage.kubectl("wait", "pod/machine", "--for=condition=Ready", "--timeout=120s")
    stage.expect("before, the answer to the outside", saw=from_outside(stage), wanted="")
    stage.before["leaves as"] = from_pod(stage, "machine", stage.at.outside)
    # A CNI masquerades its pods, or leaves that to another program.
    stage.expect("before, the source address outside", saw=stage.before["leaves as"] in {*stage.edges, ""}, wanted=True)
    stage.before["ready since"] = ready_since(stage)
    stage.kubectl("apply", "-k", str(kustomization(stage)))
    stage.rolled_out("daemonset/wholeip", namespace=SPACE)
    lasted = stage.eventually("an answer to the outside", lambda: from_outside(stage), seconds=60)
    stage.say(f"{stage.at.whole} answers {lasted:.1f} s after its agent is ready")
    stage.say(stage.kubectl("exec", "-n", SPACE, "daemonset/wholeip", "--", "wholeip", "status"))
    expect_all_ways(stage)


def rules_outlive_agents(stage: Stage) -> None:
    """Stopped agents leave their rules: a connection survives, new ones work, and the same with agents again."""
    before = rules(stage)
    with asking_from_outside(stage) as connection:
        stage.expect("a connection", saw=ask_again(connection), wanted=stage.at.outside)
        stage.kubectl("delete", "daemonset", "wholeip", "-n", SPACE, "--cascade=foreground")
        stage.expect("agents", saw=stage.get("pods", "-n", SPACE)["items"], wanted=[])
        stage.expect("the rules", saw=rules(stage), wanted=before)
        stage.expect("the same connection", saw=ask_again(connection), wanted=stage.at.outside)
        expect_all_ways(stage)
        stage.kubectl("apply", "-k", str(kustomization(stage)))
        stage.rolled_out("daemonset/wholeip", namespace=SPACE)
        stage.expect("the rules, with an agent again", saw=rules(stage), wanted=before)
        stage.expect("the same connection", saw=ask_again(connection), wanted=stage.at.outside)
    stage.say("\n".join(line for line in before.splitlines() if stage.at.whole in line))
    stage.expect("the time since which the pod is ready", saw=ready_since(stage), wanted=stage.before["ready since"])
    stage.say(f"the kubelet found the pod ready all the time, since {ready_since(stage)}")


def kustomization(stage: Stage) -> Path:
    """The folder of an owner who uses the image with nft only for the agents, as in deploy/README.md."""
    folder = stage.folder / "wholeip"
    folder.mkdir(exist_ok=True)
    name, _, tag = WITH_NFTABLES.rpartition(":")
    networks = {
        "name": "WHOLEIP_CLUSTER_NETWORK",
        "value": " ".join(f"{at.pods} {at.services}" for at in stage.cluster.at),
    }
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
    start_outside(stage, Outside(WORLD, [(stage.at, stage.at.outside)]), sys.executable, "-c", ANSWER, str(PORT))
    enter_by(stage, home(stage))


def home(stage: Stage) -> Node:
    """The pod's node, to which a balancer sends its address: the Service's externalTrafficPolicy is Local."""
    return stage.nodes[-1]


def enter_by(stage: Stage, node: Node) -> None:
    """The node to which the outside sends what is for the load balancer's address."""
    there = stage.at.node(node.place.number)
    add_routes(pid_of(stage, WORLD), [(f"{stage.at.whole}/{stage.at.host_length}", there)])


def expect_all_ways(stage: Stage) -> None:
    """The addresses that the peers see, asked again; the outside enters by each node."""
    pod, client = str(stage.get("pod", "machine")["status"]["podIP"]), stage.client_address()
    whole, outside = stage.at.whole, stage.at.outside
    saw = {
        f"machine to outside {outside}": from_pod(stage, "machine", outside),
        f"client to {whole}": from_pod(stage, "client", whole),
        f"client to pod {pod}": from_pod(stage, "client", pod),
    }
    # Cilium hands replies between pods of one node past the kernel's NAT; docs/pages/wholeip.md says so.
    answered = client if stage.plan.cni == BRIDGE else ""
    stage.expect("the addresses seen", saw=list(saw.values()), wanted=[whole, answered, client])
    for node in stage.nodes:
        enter_by(stage, node)
        saw[f"outside to {whole} by {node.name}"] = seen = from_outside(stage)
        # Another node hides the client, so that the reply comes back through it.
        wanted = outside if node is home(stage) else stage.at.node(node.place.number)
        stage.expect(f"the address seen, by {node.name}", saw=seen, wanted=wanted)
    enter_by(stage, home(stage))
    for node in stage.nodes:
        saw[f"{node.name} to pod {pod}"] = expect_own(node, pod)
    stage.say("\n".join(f"{way}: seen as {who}" for way, who in saw.items()))


def expect_own(node: Node, pod: str) -> str:
    """A node asks the pod, and is seen with an address of its own."""
    asked = [sys.executable, "-c", ASK, pod, str(PORT)]
    done = subprocess.run(node.inside(*asked), input="\n", capture_output=True, text=True, check=False)
    seen = done.stdout.strip()
    if f" {seen}/" not in node.run(program("ip"), "-oneline", "addr").stdout:
        raise StepFailed(f"{node.name} to pod {pod}: seen as {seen!r}, {done.stderr}")
    return seen


def from_outside(stage: Stage) -> str:
    """The client's address as seen by the pod; empty without an answer."""
    with asking_from_outside(stage) as connection:
        return ask_again(connection)


def asking_from_outside(stage: Stage) -> subprocess.Popen[str]:
    """A connection from there to the pod, open until its input ends."""
    command = inside(stage, WORLD, sys.executable, "-c", ASK, stage.at.whole, str(PORT))
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
    """Our table in the kernel of each node, without its counters; empty if it does not exist on any."""
    words = (program("nft"), "--stateless", "list", "table", "inet", TABLE)
    return "".join(node.run(*words).stdout for node in stage.nodes if has_rules(node))


def has_rules(node: Node) -> bool:
    """Whether the node's kernel has our table."""
    return f"table inet {TABLE}" in node.run(program("nft"), "list", "tables").stdout.splitlines()
