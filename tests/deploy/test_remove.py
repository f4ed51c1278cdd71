"""`deploy/remove.sh` with a kubectl that writes down what it is told: the order, and where it stops."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.manifests import DEPLOY

# What each call is answered; the Job's status is the last word of the scene.
KUBECTL = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  *"get cronjob"*) [ "$INSTALLER" = no ] || echo cronjob.batch/dnsproxy-uninstall ;;
  *"get job"*) echo "$STATUS" ;;
  *"create job"*) [ "$STATUS" != refused ] || exit 1 ;;
esac
"""


@dataclass(frozen=True)
class Removal:
    """What a removal did."""

    status: int
    calls: list[str]
    told: str

    @property
    def deleted(self) -> bool:
        """Whether it came to deleting what was applied."""
        return any(" -k " in f" {call} " for call in self.calls)


def remove(folder: Path, *arguments: str, status: str = "Complete", installer: str = "yes", wait: str = "4") -> Removal:
    program, calls = folder / "kubectl", folder / "calls"
    program.write_text(KUBECTL, encoding="utf-8")
    program.chmod(0o755)
    calls.touch()
    environment = {**os.environ, "KUBECTL": str(program), "CALLS": str(calls), "STATUS": status, "INSTALLER": installer}
    command = ["sh", str(DEPLOY / "remove.sh"), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment | {"SECONDS_TO_WAIT": wait}
    )
    return Removal(done.returncode, calls.read_text().splitlines(), done.stderr)


def test_the_stanza_goes_first(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster")
    assert done.status == 0
    order = [
        next(word for word in ("create", "dnsproxy-install", "-k") if word in call)
        for call in done.calls
        if is_change(call)
    ]
    assert order == ["dnsproxy-install", "create", "-k"]
    # One that stays would put it back.
    assert done.calls[0].startswith("--namespace switchback delete deployment,job dnsproxy-install")
    assert done.calls[-1] == "delete -k my-cluster --ignore-not-found"


@pytest.mark.parametrize(
    ("status", "wait", "told"),
    [
        ("Failed", "4", "could not be taken out"),
        ("FailureTarget Failed", "4", "could not be taken out"),
        ("", "0", "is not out after 0 s"),
        ("refused", "4", ""),
    ],
)
def test_nothing_is_deleted_while_the_stanza_is_there(status: str, wait: str, told: str, tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", status=status, wait=wait)
    assert done.status == 1
    assert not done.deleted
    assert told in done.told


def test_without_an_installer_the_rest_goes_and_it_says_so(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", installer="no")
    assert done.status == 0
    assert done.deleted
    assert "no installer here" in done.told


@pytest.mark.parametrize("arguments", [(), ("one", "two")], ids=["none", "two"])
def test_it_takes_one_argument(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = remove(tmp_path, *arguments)
    assert (done.status, done.calls) == (2, [])
    assert "KUSTOMIZATION" in done.told


def is_change(call: str) -> bool:
    return "delete" in call or "create" in call
