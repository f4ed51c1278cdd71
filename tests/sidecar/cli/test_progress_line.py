"""A line that changes on a terminal, and nothing elsewhere."""

from __future__ import annotations

import os

import pytest

from sidecar.cli.progress_line import ProgressLine


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine()
    line.show("looked up 3 of 9 names")
    line.clear()
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_one_line_and_keeps_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    line = ProgressLine()
    line.clear()
    assert capsys.readouterr().err == ""
    line.show("dialled 3\x1b[2J of 9 ports")
    line.clear()
    assert capsys.readouterr().err == "\r\x1b[Kdialled 3\\x1b[2J of 9 ports\r\x1b[K"


def test_a_line_is_no_wider_than_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    ProgressLine().show("x" * 100)
    assert capsys.readouterr().err == "\r\x1b[K" + "x" * 19


def test_a_terminal_that_hung_up_ends_the_line_and_not_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        line = ProgressLine()
        os.close(ours)
        for _ in range(2):
            line.show("restoring the status")
        line.clear()
        assert not line.on_terminal
        # What was buffered cannot be flushed at the end either.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stderr.fileno())
        os.close(null)
