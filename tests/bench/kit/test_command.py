"""What every command that measures on a real API server says when it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.bench.doctor import __main__ as doctor
from tests.bench.sync import __main__ as sync
from tests.bench.sync.run import Found
from tests.kit.processes import StartFailed

COMMANDS = [pytest.param(doctor, "--ingresses", id="doctor"), pytest.param(sync, "--size", id="sync")]
"""Each with the flag of its size."""


def run(command: Any, flag: str, *more: str) -> Result:
    return CliRunner().invoke(command.main, [flag, "10", *more])


@pytest.mark.parametrize(("command", "flag"), COMMANDS)
@pytest.mark.parametrize("missing", ["etcd", "kube-apiserver"])
def test_without_a_peer_it_says_that_it_could_not_measure(
    monkeypatch: pytest.MonkeyPatch, command: Any, flag: str, missing: str
) -> None:
    monkeypatch.setattr("tests.bench.kit.command.find_program", lambda name: None if name == missing else name)
    result = run(command, flag)
    assert result.exit_code == 3
    assert f"not installed: {missing} (`make peers` brings them)" in result.stderr


@pytest.mark.parametrize(("command", "flag"), COMMANDS)
def test_an_api_server_that_does_not_start_is_no_measurement(
    monkeypatch: pytest.MonkeyPatch, command: Any, flag: str
) -> None:
    def fail(_: object) -> Any:
        raise StartFailed("it is not ready")

    monkeypatch.setattr("tests.bench.kit.command.find_program", lambda name: name)
    monkeypatch.setattr(command, "run_bench", fail)
    result = run(command, flag)
    assert result.exit_code == 3
    assert "it is not ready" in result.stderr


@pytest.mark.parametrize(
    ("command", "flag", "nothing"),
    [
        pytest.param(doctor, "--ingresses", [], id="doctor"),
        pytest.param(sync, "--size", Found([], []), id="sync"),
    ],
)
def test_where_nothing_was_measured_that_is_the_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Any, flag: str, nothing: object
) -> None:
    monkeypatch.setattr("tests.bench.kit.command.find_program", lambda name: name)
    monkeypatch.setattr(command, "run_bench", lambda _: nothing)
    result = run(command, flag, "--json", str(tmp_path / "bench.json"))
    assert result.exit_code == 3
    assert "nothing was measured" in result.stderr
