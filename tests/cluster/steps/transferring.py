"""Steps of the scene with node-local: the nodes' pods have the table of two primaries, and keep it without them.

The law: as in steps.py. The new names here are of example.com, without public records: their answers come from the
table. Those of example.org lead to the load balancer, and their addresses are replaced without any claim.
"""

from __future__ import annotations

from typing import Final

from tests.cluster.acting import kill_one
from tests.cluster.nodes.node import Node
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.life import ready_pods, scale
from tests.kit.programs import program

PRIMARY: Final = "dnsproxy-primary"
NODES_ACCOUNT: Final = "--as=system:serviceaccount:switchback:dnsproxy-node"
TAKEOVER_SECONDS: Final = 60.0
"""A Lease is free 15 s after its holder's last renewal; on a busy machine more."""


def change_reaches_each_node(stage: Stage) -> None:
    """A new Ingress is answered on each node within a second, by pods that may not read it from the API server."""
    for kind in ("ingresses", "services", "namespaces"):
        may = stage.node.kubectl("auth", "can-i", "list", kind, "-n", "switchback", NODES_ACCOUNT, check=False)
        stage.expect(f"whether the nodes' account may list {kind}", saw=may.stdout.strip(), wanted="no")
    relay = stage.relay_address()
    stage.ingress("each-node", "each-node.example.com")
    for node in stage.nodes:
        lasted = stage.eventually(
            f"its answer on {node.name}",
            lambda node=node: asked_on(stage, node, "each-node.example.com") == [relay],  # type: ignore[misc]
            seconds=10,
        )
        stage.say(f"{node.name}: {lasted:.2f} s")
        if lasted >= 1:
            raise StepFailed(f"a new Ingress took {lasted:.2f} s on {node.name}")


def lost_primaries_change_nothing(stage: Stage) -> None:
    """Without a primary every name stays, over a restart too; when one is back, what came meanwhile is answered."""
    relay = stage.relay_address()
    scale(stage, f"deployment/{PRIMARY}", 0)
    stage.eventually("the end of the primaries", lambda: not pods_of(stage, PRIMARY))
    stage.ingress("meanwhile", "meanwhile.example.com")
    killed = kill_one(stage, "dnsproxy serve")
    for node in stage.nodes:
        stage.eventually(
            f"a known name on {node.name}",
            lambda node=node: asked_on(stage, node, "each-node.example.com") == [relay],  # type: ignore[misc]
            seconds=60,
        )
        answer = answered_on(stage, node, "meanwhile.example.com")
        # It is in no saved table, and has no public record.
        stage.expect(f"a new name on {node.name}", saw=answer, wanted=[])
    stage.say(f"process {killed} of dnsproxy was killed; it answered from its saved table")
    scale(stage, f"deployment/{PRIMARY}", 2)
    stage.eventually("a primary", lambda: ready_pods(stage, PRIMARY))
    for node in stage.nodes:
        lasted = stage.eventually(
            f"the new name on {node.name}",
            lambda node=node: asked_on(stage, node, "meanwhile.example.com") == [relay],  # type: ignore[misc]
            seconds=90,
        )
        stage.say(f"{node.name} has what came meanwhile {lasted:.1f} s after a primary was ready")
    stage.rolled_out(f"deployment/{PRIMARY}")


def other_primary_takes_over(stage: Stage) -> None:
    """The primary that publishes dies hard: the other one takes the Lease and publishes, with higher serials."""
    relay = stage.relay_address()
    holder = holder_of(stage)
    stage.kubectl("delete", "pod", holder, "-n", "switchback", "--grace-period=0", "--force")
    stage.ingress("takeover", "takeover.example.com")
    for node in stage.nodes:
        lasted = stage.eventually(
            f"a new name on {node.name}",
            lambda node=node: asked_on(stage, node, "takeover.example.com") == [relay],  # type: ignore[misc]
            seconds=TAKEOVER_SECONDS,
        )
        stage.say(f"{node.name}: {lasted:.1f} s after {holder} was deleted")
    if holder_of(stage) == holder:
        raise StepFailed(f"{holder} still has the Lease")
    stage.rolled_out(f"deployment/{PRIMARY}")


def asked_on(stage: Stage, node: Node, name: str) -> list[str]:
    """The answer of the dnsproxy of a node: the Service sends queries to the pod of the same node alone."""
    address = stage.get("service", "dnsproxy", "-n", "switchback")["spec"]["clusterIP"]
    words = [f"@{address}", "+short", "+tries=1", "+time=2", name, stage.at.record]
    return node.run(program("dig"), *words, check=False).stdout.split()


def answered_on(stage: Stage, node: Node, name: str) -> list[str]:
    """The first answer of the dnsproxy of a node, whatever it says.

    A started container answers before its first readiness probe, while kube-proxy already drops packets to it.
    """
    answers: list[list[str]] = []

    def look() -> bool:
        answers.append(asked_on(stage, node, name))
        return ";;" not in answers[-1]

    stage.eventually(f"an answer on {node.name}", look, seconds=30)
    return answers[-1]


def holder_of(stage: Stage) -> str:
    """The pod that publishes."""
    lease = stage.get("lease", "dnsproxy-rpz", "-n", "switchback")
    return str(lease["spec"]["holderIdentity"]).rpartition("_")[0]


def pods_of(stage: Stage, name: str) -> list[str]:
    """The pods with this name in their labels."""
    found = stage.get("pods", "-n", "switchback", "-l", f"app.kubernetes.io/name={name}")["items"]
    return [str(one["metadata"]["name"]) for one in found]
