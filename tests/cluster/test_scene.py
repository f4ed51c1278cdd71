"""The scene on a real Kubernetes, `make cluster-test`, as a test: the rows of the matrix that CI plays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.matrix import Combination, load_matrix
from tests.cluster.nodes.cluster import missing
from tests.cluster.scenes import needed_by
from tests.conftest import refuse
from tests.deploy.image import PROJECT

SCENE_SECONDS = 2700
"""A quarter of an hour on an idle machine; each wait of the scene has its own deadline."""
IN_CI = [one for one in load_matrix().combination if one.where == "ci"]


@pytest.mark.timeout(SCENE_SECONDS + 60)
@pytest.mark.parametrize("row", IN_CI, ids=lambda row: row.name)
def test_everything_works_from_the_installation_to_the_removal(row: Combination, tmp_path: Path) -> None:
    if os.environ.get("REQUIRE_PEERS") != "1":
        pytest.skip("it takes minutes: run `make cluster-test`; CI runs it too (REQUIRE_PEERS=1)")
    if os.geteuid() != 0:
        refuse("a node needs root")
    if absent := missing(more=needed_by(row.plan)):
        refuse(f"missing: {', '.join(absent)} (`make cluster-peers` builds them)")
    log = tmp_path / "scene.log"
    with log.open("wb") as said:
        command = [sys.executable, "-m", "tests.cluster", *row.flags]
        done = subprocess.run(command, stdout=said, stderr=said, check=False, cwd=PROJECT, timeout=SCENE_SECONDS)
    told = log.read_text(errors="replace")
    assert done.returncode == 0, failure(told)
    # For readers of the CI log: the observations, and the duration of each step.
    sys.stdout.write(told)


def failure(told: str) -> str:
    """What the step said that fell, and the state after it: a log may be cut after its first lines."""
    before, failed, state = told.rpartition("FAILED after")
    # No observation has an empty line, so this is the step's heading.
    step = before[before.rfind("\n\n") :]
    return f"{step[-4000:]}{failed}{state}"[:12000] if failed else told[-12000:]
