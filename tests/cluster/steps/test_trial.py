"""The Jobs of the trial, and what is read of their ends."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.addresses import IPV4
from tests.cluster.nodes.cluster import Cluster
from tests.cluster.nodes.link import Link
from tests.cluster.plan import Plan
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.trial import answered_before, doctor, exit_status, expect_end, with_words
from tests.kit.programs import program

RUNNING = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
WAITING = {"state": {"waiting": {"reason": "ContainerCreating"}}}


def ended(code: int) -> dict[str, Any]:
    return {"state": {"terminated": {"exitCode": code}}}


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"podIP": "10.244.0.9", "containerStatuses": list(containers)}}


def job(*containers: str) -> dict[str, Any]:
    made = [{"name": name, "command": ["dnsproxy"], "args": ["doctor"]} for name in containers]
    return {"kind": "Job", "spec": {"template": {"spec": {"containers": made}}}}


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ([], None),
        ([{"status": {"phase": "Pending"}}], None),
        ([pod(WAITING)], None),
        ([pod(RUNNING)], None),
        ([pod(ended(0))], 0),
        ([pod(ended(1))], 1),
        ([pod(ended(137))], 137),
    ],
    ids=["no-pod", "not-scheduled", "waiting", "running", "yes", "no", "killed"],
)
def test_a_job_has_an_exit_status_once_its_container_has_ended(pods: list[dict[str, Any]], status: int | None) -> None:
    assert exit_status(pods) == status


def test_a_job_gets_its_words_and_keeps_the_rest() -> None:
    before = job("doctor")
    (container,) = with_words(before, ["ip-mode", "--check"])["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "doctor", "command": ["dnsproxy"], "args": ["ip-mode", "--check"]}
    assert before == job("doctor")


@pytest.mark.parametrize("containers", [(), ("doctor", "sidecar")], ids=["none", "two"])
def test_only_a_job_with_one_container_gets_words(containers: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="unpack"):
        with_words(job(*containers), ["ip-mode"])


@pytest.mark.parametrize(
    ("log", "answered"),
    [
        ("", {}),
        (f"  before the trial: {IPV4.public}:80 (HTTP): plain closed", {"80": False}),
        (f"  before the trial: {IPV4.public}:443 (TLS): plain reset (Connection reset by peer)", {"443": False}),
        (f"  before the trial: {IPV4.public}:80 (HTTP): plain answered (200 OK)", {"80": True}),
        (f"  trial: {IPV4.public}:80 (HTTP): plain closed", {}),
        ("  before the trial: 192.0.2.1:80 (HTTP): plain closed", {}),
    ],
    ids=["empty", "closed", "reset", "answered", "in-the-trial", "another-address"],
)
def test_only_a_connection_before_the_trial_counts_as_one(log: str, answered: dict[str, bool]) -> None:
    assert answered_before(log, IPV4.public) == answered


class Told(Stage):
    """A stage with one ended pod and its log."""

    def get(self, *words: str) -> Any:
        assert "job-name=trial" in words
        return {"items": [pod(ended(1))]}

    def kubectl(self, *words: str, given: str | None = None) -> str:
        assert (words[:2], given) == (("logs", "job/trial"), None)
        return "Service a/b: no: it is not tried\n"


def told(folder: Path) -> Stage:
    return Told(Cluster(Plan(nodes=1), Link(0), folder, ""), folder, folder)


def test_the_end_of_a_job_has_the_address_of_its_pod(tmp_path: Path) -> None:
    assert expect_end(told(tmp_path), "trial", status=1, lines=["a/b: no", "not tried"])[1] == "10.244.0.9"


@pytest.mark.parametrize(
    ("status", "lines"), [(0, ["a/b: no"]), (1, ["a/b: yes"]), (1, ["a/b: no", "restored"])], ids=str
)
def test_another_end_of_a_job_fails_the_step(tmp_path: Path, status: int, lines: list[str]) -> None:
    with pytest.raises(StepFailed):
        expect_end(told(tmp_path), "trial", status=status, lines=lines)


@pytest.mark.peer("kubectl")
def test_the_component_doctor_can_be_applied_alone(tmp_path: Path) -> None:
    command = [program("kubectl"), "kustomize", str(doctor(told(tmp_path)))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kinds = {f"{one['kind']}/{one['metadata']['name']}" for one in yaml.safe_load_all(done.stdout)}
    assert {"CronJob/doctor", "ServiceAccount/doctor", "ClusterRole/switchback-doctor"} <= kinds
