"""A prepared program's runs are as those of the program: its status, its two outputs, its own environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.prepared_program import PreparedProgram, prepared_program


@pytest.fixture
def dnsproxy(tmp_path: Path) -> Iterator[PreparedProgram]:
    with prepared_program(tmp_path, "dnsproxy", "dnsproxy.install.command") as prepared:
        yield prepared


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--version"], id="status 0"),
        pytest.param(["install", "--file", "/no/such/file", "--address", "192.0.2.53"], id="an error"),
        pytest.param(["serve", "--no-such-flag"], id="bad usage"),
        pytest.param(["status", "--kubeconfig", "/no/such/file"], id="could not find out"),
    ],
)
def test_a_run_says_what_the_program_says(dnsproxy: PreparedProgram, words: list[str]) -> None:
    command = [sys.executable, "-m", "dnsproxy", *words]
    plain = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    for _ in range(2):
        run = dnsproxy.run(*words, environment=os.environ)
        assert (run.returncode, run.stdout, run.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_a_run_leaves_its_environment_to_no_other(dnsproxy: PreparedProgram) -> None:
    assert dnsproxy.run("serve", "--help", environment={**os.environ, "COLUMNS": "40"}).stdout.count("\n") > (
        dnsproxy.run("serve", "--help", environment={**os.environ, "COLUMNS": "200"}).stdout.count("\n")
    )
