"""The forge's workflows: their linters accept them, and all that they do is in the Makefile."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.programs import program
from tests.release.clones import PROJECT

WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yaml"))
BROKEN = """\
on: push
jobs:
  a:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v4
      - run: echo ${{ github.event.issue.title }} ${{ nothing.at.all }}
"""
each = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)


def actionlint(file: Path) -> subprocess.CompletedProcess[str]:
    command = [program("actionlint"), "-no-color", "-shellcheck=", "-pyflakes=", str(file)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def zizmor(file: Path) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("zizmor")),
        "--offline",
        "--no-progress",
        "--persona=regular",
        str(file),
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def steps(workflow: Path) -> list[dict[str, Any]]:
    document = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    return [step for job in document["jobs"].values() for step in job["steps"]]


def test_there_are_two() -> None:
    assert [one.stem for one in WORKFLOWS] == ["ci", "release"]


@pytest.mark.peer("actionlint")
@each
def test_actionlint_accepts_it(workflow: Path) -> None:
    done = actionlint(workflow)
    assert (done.returncode, done.stdout) == (0, "")


@each
def test_zizmor_accepts_it(workflow: Path) -> None:
    done = zizmor(workflow)
    assert done.returncode == 0, done.stdout


@pytest.mark.peer("actionlint")
def test_the_linters_see_a_fault(tmp_path: Path) -> None:
    """The judges themselves."""
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "broken.yaml").write_text(BROKEN)
    assert "nothing" in actionlint(folder / "broken.yaml").stdout
    found = zizmor(folder / "broken.yaml")
    assert found.returncode > 0
    assert "unpinned-uses" in found.stdout


@each
def test_each_step_is_a_make_target_or_a_pinned_action(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for step in steps(workflow):
        if "run" in step:
            matched = re.fullmatch(r"make ([a-z-]+)", step["run"])
            assert matched is not None, step
            assert matched[1] in targets
        else:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"]), step


@each
def test_the_comment_behind_an_action_names_its_release(workflow: Path) -> None:
    lines = [line for line in workflow.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line
