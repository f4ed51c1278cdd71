"""Exit statuses are a promise to scripts."""

from __future__ import annotations

from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus


def test_exit_statuses_have_their_numbers() -> None:
    assert {status.name: int(status) for status in ExitStatus} == {"DONE": 0, "NO": 1, "BAD_USAGE": 2, "UNKNOWN": 3}


def test_a_program_that_cannot_start_is_bad_usage_unless_it_says_otherwise() -> None:
    assert StartError("a port is in use").status == ExitStatus.BAD_USAGE
    assert StartError("no answer", status=ExitStatus.UNKNOWN).status == ExitStatus.UNKNOWN
