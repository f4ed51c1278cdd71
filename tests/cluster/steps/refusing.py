"""A step of the scene: the traffic that the network policies deny.

The law: as in steps.py. The policies are enforced from the beginning, so every other step shows the traffic that they
allow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from tests.cluster.nodes.configs import API_PORT
from tests.cluster.stage import Stage

HTTP: Final = 80

DIAL: Final = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor

def dial(place):
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError:
        return False
    return True

places = sys.argv[1:]
print(json.dumps(list(ThreadPoolExecutor(len(places)).map(dial, places))))
"""


def strangers_are_refused(stage: Stage) -> None:
    """The network policies: an operator's ports are silent to other pods, and ours reach no more than they need."""
    dnsproxy, relay = address(stage, "switchback", "dnsproxy"), address(stage, "switchback", "relay")
    port = next(one["targetPort"] for one in stage.relay()["spec"]["ports"] if one["port"] == HTTP)
    plain = stage.get("pods", "-n", "ingress-nginx", "-l", "app=plain")["items"][0]["status"]["podIP"]
    wanted = {
        f"client to dnsproxy {dnsproxy}:1053": True,
        f"client to dnsproxy {dnsproxy}:8081": False,
        f"client to relay {relay}:{port}": True,
        f"client to relay {relay}:8082": False,
        f"client to plain {plain}:80": True,
        f"dnsproxy to plain {plain}:80": False,
        f"dnsproxy to relay {relay}:{port}": False,
        f"dnsproxy to nameserver {stage.at.node(1)}:53": True,
        f"dnsproxy to apiserver {stage.at.node(1)}:{API_PORT}": True,
        f"dnsproxy to kubelet {stage.at.node(1)}:10250": False,
        f"relay to plain {plain}:80": True,
    }
    stage.expect("allowed connections", saw=dialled(stage, wanted), wanted=wanted)
    stage.say("\n".join(f"{what}: {'answered' if answered else 'silent'}" for what, answered in wanted.items()))
    if "enforcer" not in stage.node.processes:
        return
    # Without the rules all ports answer: so the rules deny the traffic, and the servers are running.
    for node in stage.nodes:
        node.kill("enforcer")
        node.run("nft", "delete", "table", "inet", "policies")
    stage.expect("connections without the policies", saw=dialled(stage, wanted), wanted=dict.fromkeys(wanted, True))
    for node in stage.nodes:
        node.start("enforcer")
    stage.eventually("the rules again", lambda: dialled(stage, wanted) == wanted)


def dialled(stage: Stage, asked: Iterable[str]) -> dict[str, bool]:
    """The allowed connections: `FROM to WHAT ADDRESS:PORT`, grouped by pod."""
    found: dict[str, bool] = {}
    for source, rows in groupby(asked, key=lambda what: what.split()[0]):
        calls = list(rows)
        python = ["client", "--", "python3"]
        if source != "client":
            python = ["-n", "switchback", f"deployment/{source}", "--", "/app/bin/python"]
        said = stage.kubectl("exec", *python, "-c", DIAL, *(what.split()[-1] for what in calls))
        found |= zip(calls, json.loads(said), strict=True)
    return found


def address(stage: Stage, namespace: str, name: str) -> str:
    """The address of one pod of a program."""
    pods = stage.get("pods", "-n", namespace, "-l", f"app.kubernetes.io/name={name}")["items"]
    return str(pods[0]["status"]["podIP"])
