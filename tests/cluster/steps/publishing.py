"""Steps of the scene: published names for programs that do not ask the cluster's DNS.

The law: as in steps.py.
"""

from __future__ import annotations

from tests.cluster.acting import memory
from tests.cluster.nodes.node import Node
from tests.cluster.stage import Stage

HOST = "brief.example.org"


def node_has_the_names(stage: Stage) -> None:
    """node-hosts, external-dns: a name is in the node's hosts file and in a DNSEndpoint while its Ingress exists."""
    relay = stage.relay_address()
    stage.rolled_out("daemonset/node-hosts", namespace="switchback-nodes")
    stage.rolled_out("deployment/external-dns-publisher")
    stage.eventually("a name that was there", lambda: getent(stage, "app.example.org") == relay, seconds=60)
    stage.eventually("its record", lambda: records(stage).get("app.example.org") == [relay], seconds=60)
    stage.ingress("brief", HOST)
    in_file = stage.eventually("a new name", lambda: getent(stage, HOST) == relay, seconds=60)
    stage.eventually("its record", lambda: records(stage).get(HOST) == [relay], seconds=60)
    stage.say(f"the node resolves a new name {in_file:.0f} s after kubectl returned")
    stage.say(stage.node.run("cat", "/etc/hosts").stdout)
    stage.say("\n".join(f"DNSEndpoint {name}: {', '.join(targets)}" for name, targets in records(stage).items()))
    stage.say("memory in MB: " + ", ".join(f"{name} {size}" for name, size in memory(stage).items()))
    status, said = curl(stage, f"https://{HOST}/")
    stage.expect("the page, on the node", saw=(status, said), wanted=(0, f"hello from {HOST}"))
    stage.kubectl("delete", "ingress", "brief")
    stage.eventually("no name any more", lambda: getent(stage, HOST) == stage.at.public, seconds=60)
    stage.eventually("no record any more", lambda: HOST not in records(stage), seconds=60)
    stage.expect("another name", saw=getent(stage, "app.example.org"), wanted=relay)


def getent(stage: Stage, name: str, node: Node | None = None) -> str:
    """A name's address from a node's C library: from its hosts file, otherwise from its nameserver."""
    said = (node or stage.node).run("getent", f"ahostsv{stage.at.family}", name, check=False).stdout.split()
    return said[0] if said else ""


def curl(stage: Stage, url: str) -> tuple[int, str]:
    """A page, fetched as by a program of the node."""
    words = ["curl", "--noproxy", "*", "-sS", "--cacert", f"{stage.folder}/tls.crt", "--max-time", "8", url]
    done = stage.node.run(*words, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def hosts_file(stage: Stage) -> tuple[str, str]:
    """Mode and owner, and every octet."""
    return tuple(stage.node.run(*words, "/etc/hosts").stdout for words in (("stat", "-c", "%a %u %g"), ("base64",)))  # type: ignore[return-value]


def records(stage: Stage) -> dict[str, list[str]]:
    """The input of external-dns: the targets by name, of the primary family."""
    objects = stage.get("dnsendpoints", "-n", "switchback")["items"]
    rows = [row for one in objects for row in one["spec"]["endpoints"]]
    return {row["dnsName"]: row["targets"] for row in rows if row["recordType"] == stage.at.record}
