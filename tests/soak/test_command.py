from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.kit.launched import ROOT
from tests.soak import __main__ as command
from tests.soak.figures import FIGURES

COMMAND = (sys.executable, "-m", "tests.soak", "--minutes", "0.1", "--rate", "300")


def run(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(command.main, list(arguments), env=environment)


def test_help_says_what_goes_on_and_gives_examples() -> None:
    shown = run("--help").output
    assert "Examples:" in shown
    assert "Exit status: 0 flat" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--minutes", "0"), id="no time"),
        pytest.param(("--minutes", "long"), id="no number"),
        pytest.param(("--rate", "0"), id="nothing to do"),
        pytest.param(("--rate", "1e9"), id="more than a machine can"),
        pytest.param(("--hours", "1"), id="unknown flag"),
    ],
)
def test_bad_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[0] in result.stderr


def test_a_short_soak_finds_nothing_wrong_and_tells_every_figure(tmp_path: Path) -> None:
    figures = tmp_path / "soak.json"
    ran = subprocess.run([*COMMAND, "--json", str(figures)], cwd=ROOT, capture_output=True, text=True, check=False)
    # A run of a few seconds is all warm-up, so growth has no meaning here.
    assert ran.returncode in (0, 1), ran.stderr
    content = json.loads(figures.read_text())
    assert [problem for problem in content["problems"] if " grew from " not in problem] == []
    assert [row["name"] for row in content["figures"]] == [figure.name for figure in FIGURES]
    assert all(sample.keys() > {figure.name for figure in FIGURES} for sample in content["samples"])
    for kind in ("names of the table", "names outside", "over TCP"):
        assert content["questions"][kind]["right"] > 0
    for event in ("hosts files", "TCP connections dropped", "slow connections", "upstream datagrams"):
        assert content["events"][event] > 0
    assert content["status"] == 0
    assert "last quarter" in ran.stdout


def test_a_server_that_does_not_start_is_no_verdict() -> None:
    environment = {**os.environ, "DNSPROXY_TTL": "none"}
    ran = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 3
    assert "does not start" in ran.stderr
    assert ran.stdout == ""


@contextmanager
def soaking(folder: Path, *, samples: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A soak that has taken some samples, and the process of its server."""
    command = [*COMMAND, "--json", str(folder / "soak.json")]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as soak:
        assert soak.stderr is not None
        for line in soak.stderr:
            if line.startswith(f"[{samples}/"):
                break
        # Linux lists a child under the thread that started it, which need not be the first.
        children = [path.read_text().split() for path in Path(f"/proc/{soak.pid}/task").glob("*/children")]
        (server,) = itertools.chain(*children)
        yield soak, int(server)


def test_sigterm_ends_it_and_its_server(tmp_path: Path) -> None:
    with soaking(tmp_path, samples=1) as (soak, server):
        soak.terminate()
        soak.communicate()
    assert soak.returncode == 130
    assert not Path(f"/proc/{server}").exists()


@pytest.mark.parametrize("samples", [1, 10], ids=["too early for a verdict", "with samples for a verdict"])
def test_a_server_that_dies_is_reported(samples: int, tmp_path: Path) -> None:
    with soaking(tmp_path, samples=samples) as (soak, server):
        os.kill(server, signal.SIGKILL)
        told = "".join(soak.communicate())
    assert soak.returncode == 1
    assert "exit status: -9" in told
