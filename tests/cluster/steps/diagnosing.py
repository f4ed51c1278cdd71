"""The steps in which the doctor examines the cluster, from the node, which reaches every Service and pod."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from tests.cluster.stage import Stage, StepFailed

HOST: Final = "app.example.org"
COMMANDS: Final = ["kubectl apply -k deploy", "kubectl -n switchback rollout status deployment/operate"]
"""What installs Switchback, on any cluster."""


def doctor_names_the_fault(stage: Stage) -> None:
    """`dnsproxy doctor` finds the short circuit, with its evidence and the commands that fix it."""
    found = findings(stage, HOST, wanted=1)
    if "short-circuited" not in found:
        raise StepFailed(f"the short circuit is not found: {sorted(found)}")
    finding = found["short-circuited"]
    stage.say("\n".join([finding["text"], *finding["evidence"]]))
    lines = [line for step in finding["steps"] for line in step["lines"]]
    stage.say("\n".join(lines))
    stage.expect("the commands to type", saw=lines, wanted=COMMANDS)


def doctor_sees_the_cure(stage: Stage) -> None:
    """`dnsproxy doctor` finds the short circuit answered, the stanza loaded and the relay trusted."""
    found = findings(stage, HOST, wanted=0)
    if missing := {"short-circuit-answered", "loaded", "relayed"} - found.keys():
        raise StepFailed(f"not found: {sorted(missing)}; found: {sorted(found)}")


def findings(stage: Stage, host: str, *, wanted: int) -> dict[str, Any]:
    """The doctor's findings for a host, by id."""
    kubeconfig = f"--kubeconfig={stage.node.folder}/kubeconfig"
    command = [sys.executable, "-m", "dnsproxy", "doctor", host, kubeconfig, "--probe", "--output=json"]
    done = stage.node.run(*command, check=False)
    if done.returncode != wanted:
        raise StepFailed(f"the doctor's status was {done.returncode}: {done.stdout[-4000:]}{done.stderr[-2000:]}")
    document = json.loads(done.stdout)
    stage.say(f"{document['verdict']}; could not read: {[one['what'] for one in document['unseen']]}")
    return {one["id"]: one for one in document["findings"]}
