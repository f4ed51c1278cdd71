"""The progress line of a wait."""

from __future__ import annotations

import io
import sys

import pytest

from dnsproxy.install.progress import Progress
from tests.dnsproxy.install.report.test_verdict import OTHER, asked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def make_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not a fixture: pytest puts its own stderr back between setup and test."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_where_there_is_no_terminal_a_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("it", 120)
    for second in range(31):
        progress(float(second), [asked(OTHER)])
    progress.end()
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        f"Waiting for it, {second} of up to 120 s (10.96.0.10 for .: 1 of 1 NXDOMAIN)" for second in (0, 15, 30)
    ]


def test_on_a_terminal_it_is_one_line_and_nothing_is_left_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = make_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "20")
    progress = Progress("it", 120)
    for second in range(3):
        progress(float(second), [asked(OTHER)])
    progress.end()
    text = terminal.getvalue()
    assert "\n" not in text
    assert text.endswith("\r\x1b[K")
    assert [len(line) for line in text.split("\r\x1b[K")] == [0, 19, 19, 19, 0]


def test_what_is_silent_says_nothing_and_what_was_not_shown_is_not_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = make_terminal(monkeypatch)
    progress = Progress("it", 120, silent=True)
    progress(0.0, [asked(OTHER)])
    progress.end()
    Progress("it", 120).end()
    assert terminal.getvalue() == ""


def test_text_from_outside_cannot_drive_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Progress("it", 120)(0.0, [asked(OTHER, zone="\x1b[2J\nx.")])
    assert "\x1b" not in capsys.readouterr().err
