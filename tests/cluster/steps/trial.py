"""`dnsproxy ip-mode --check HOST --trial` in a pod, as the guide's page runs it: a Job of the component doctor.

The law: afterwards the status, the rules and the fault are as before. The account may write one status, and only until
the end of the trial.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.cluster.acting import seen_by_nginx
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.balancer import CONTROLLER, PASSED, SPACE
from tests.deploy.manifests import DEPLOY

HOST: Final = "trial.example.org"
DOCTOR: Final = "switchback-doctor"
"""The namespace."""
JOB_SECONDS: Final = 90.0
_RIGHT: Final = "switchback-trial"
_BEFORE: Final = r"^  before the trial: {}:(?P<port>\d+) \(\w+\): plain (?P<end>\w+)"
_TRIAL: Final = ("ip-mode", "--check", "--trial", "--yes")
_KNOWN: Final = "--balancer-ends-connections"
"""What only the user can know of this balancer."""


def trial_shows_it(stage: Stage) -> None:
    """A trial says yes with its evidence, and restores; without the user's word, or where it harms, it is refused."""
    prepare(stage)
    public = stage.at.in_url(stage.at.public)
    before = {name: service(stage, name) for name in (CONTROLLER, PASSED)}
    start_job(stage, "unknown", *_TRIAL[:2], HOST, *_TRIAL[2:])
    start_job(stage, "harmful", *_TRIAL, "--service", f"{SPACE}/{PASSED}", _KNOWN)
    expect_end(stage, "unknown", status=1, lines=[f"Service {SPACE}/{CONTROLLER} is not tried: ", f"add {_KNOWN}"])
    expect_end(stage, "harmful", status=1, lines=[f"{PASSED}: no, it would harm: MetalLB passes packets on"])
    # The resource version too: nothing was written.
    stage.expect("the Services", saw={name: service(stage, name) for name in before}, wanted=before)

    start_job(stage, "trial", *_TRIAL[:2], HOST, *_TRIAL[2:], _KNOWN)
    lines = [
        f"Service {SPACE}/{CONTROLLER}: yes: after ",
        f"with ipMode Proxy every port answered: {public}:80 (HTTP): plain answered (200 OK)",
        f"{public}:443 (TLS): plain answered",
        "  after the trial: the status is as it was",
    ]
    log, address = expect_end(stage, "trial", status=0, lines=lines)
    stage.expect("ports that answered before", saw=answered_before(log, public), wanted={"80": False, "443": False})
    line = seen_by_nginx(stage, f'"{HOST}" 200 https')
    stage.say(f"nginx: {line}")
    # Some CNIs leave masquerading to another program.
    stage.expect("the client that nginx saw", saw=line.split()[0] in {*stage.edges, address}, wanted=True)
    after = service(stage, CONTROLLER)
    stage.expect("the status", saw=after["status"], wanted=before[CONTROLLER]["status"])
    if version(after) == version(before[CONTROLLER]):
        raise StepFailed("the trial wrote nothing")
    clear(stage)


def prepare(stage: Stage) -> None:
    """The component doctor, its account's right for the trial, and a host of the controller."""
    stage.kubectl("apply", "-k", str(doctor(stage)))
    rule = ("--verb=patch", "--resource=services/status", f"--resource-name={CONTROLLER}")
    stage.kubectl("create", "role", _RIGHT, "-n", SPACE, *rule)
    account = (f"--role={_RIGHT}", f"--serviceaccount={DOCTOR}:doctor")
    stage.kubectl("create", "rolebinding", _RIGHT, "-n", SPACE, *account)
    stage.ingress("trial", HOST)
    stage.ingress_status("trial", *stage.public())


def clear(stage: Stage) -> None:
    """Remove what prepare() made; the namespace ends later."""
    stage.kubectl("delete", "ingress", "trial")
    stage.kubectl("delete", "role,rolebinding", _RIGHT, "-n", SPACE)
    stage.kubectl("delete", "-k", str(doctor(stage)), "--wait=false")


def doctor(stage: Stage) -> Path:
    """The folder of a kustomization with this component alone."""
    folder = stage.folder / "doctor"
    folder.mkdir(exist_ok=True)
    place = os.path.relpath(DEPLOY / "components" / "doctor", folder.resolve())
    (folder / "kustomization.yaml").write_text(f"kind: Kustomization\ncomponents: [{place}]\n", encoding="utf-8")
    return folder


def service(stage: Stage, name: str) -> dict[str, Any]:
    """A Service as the API server has it."""
    found: dict[str, Any] = stage.get("service", name, "-n", SPACE)
    return found


def version(found: Mapping[str, Any]) -> str:
    """The resource version."""
    return str(found["metadata"]["resourceVersion"])


def start_job(stage: Stage, name: str, *words: str) -> None:
    """A Job of the doctor's CronJob that runs `dnsproxy` with these words."""
    made = stage.kubectl(
        *("create", "job", name, "-n", DOCTOR, "--from=cronjob/doctor", "--dry-run=client", "-o", "json")
    )
    stage.kubectl("create", "-f", "-", given=json.dumps(with_words(json.loads(made), words)))


def with_words(job: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The Job with other arguments of its only container."""
    changed: dict[str, Any] = json.loads(json.dumps(job))
    (container,) = changed["spec"]["template"]["spec"]["containers"]
    container["args"] = list(words)
    return changed


def expect_end(stage: Stage, name: str, *, status: int, lines: Sequence[str]) -> tuple[str, str]:
    """Wait for the end of a Job, whose log has these texts; the log, and the address of its pod."""
    pods: list[dict[str, Any]] = []

    def has_ended() -> bool:
        pods[:] = stage.get("pods", "-n", DOCTOR, "-l", f"job-name={name}")["items"]
        return exit_status(pods) is not None

    lasted = stage.eventually(f"the end of the Job {name}", has_ended, seconds=JOB_SECONDS)
    log = stage.kubectl("logs", f"job/{name}", "-n", DOCTOR)
    stage.say(f"Job {name}, after {lasted:.1f} s:\n{log}")
    stage.expect("the exit status", saw=exit_status(pods), wanted=status)
    if missing := [text for text in lines if text not in log]:
        raise StepFailed(f"the log of the Job {name} lacks {missing}")
    return log, str(pods[0]["status"]["podIP"])


def answered_before(log: str, public: str) -> dict[str, bool]:
    """Whether each port of the public address answered before the trial; the address is as in a URL."""
    lines = re.finditer(_BEFORE.format(re.escape(public)), log, re.MULTILINE)
    return {found["port"]: found["end"] == "answered" for found in lines}


def exit_status(pods: Sequence[Mapping[str, Any]]) -> int | None:
    """Of the only container of a Job's pods, once it has ended."""
    containers = [one for pod in pods for one in pod["status"].get("containerStatuses", ())]
    ends = [one["state"]["terminated"]["exitCode"] for one in containers if "terminated" in one["state"]]
    return int(ends[0]) if ends else None
