"""The layout of a diagnosis: colour, width and marks; tests/dnsproxy/doctor/test_command.py has the rest."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping

import pytest

from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Diagnosis, Finding, Remedy, Severity, Unseen
from dnsproxy.doctor.printing import Style, format_diagnosis, style_of
from tests.dnsproxy.doctor.making import facts

DIAGNOSIS = Diagnosis(
    (
        Finding(
            "short-circuited", Severity.PROBLEM, "pods fail", "Service a/b", ("one",), (Remedy("x", ("cmd",)),), ("h",)
        ),
        Finding("loaded", Severity.OK, "all is well", evidence=("two",)),
    ),
    (Unseen("the ports", "nothing was dialled"),),
    "this cluster: pods fail",
    ("from here to there",),
)  # fmt: skip


class Terminal(io.TextIOWrapper):
    """A stream that claims to be a terminal."""

    def __init__(self, *, encoding: str = "utf-8", terminal: bool = True) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def test_a_diagnosis_is_the_host_its_path_the_findings_and_the_verdict() -> None:
    assert format_diagnosis(DIAGNOSIS, facts()).splitlines() == [
        "every host of the cluster, Kubernetes v1.34.4",
        "  from here to there",
        "",
        "✗ problem  Service a/b  [short-circuited]",
        "  pods fail",
        "  hosts: h",
        "  seen: one",
        "  x",
        "      cmd",
        "",
        "✓ ok  [loaded]",
        "  all is well",
        "",
        "? could not look  the ports",
        "  nothing was dialled",
        "",
        "this cluster: pods fail",
    ]


def test_a_stream_that_cannot_encode_the_marks_gets_ascii() -> None:
    style = style_of(Terminal(encoding="ascii"), {})
    assert style.ascii
    text = format_diagnosis(DIAGNOSIS, facts(), style)
    assert "x problem" in text
    assert "+ ok" in text
    assert text.isascii()


def test_colour_adds_no_meaning() -> None:
    plain, coloured = (format_diagnosis(DIAGNOSIS, facts(), Style(colour=colour)) for colour in (False, True))
    assert "\x1b[1;31m✗ problem\x1b[0m" in coloured
    assert "\x1b[1;31mthis cluster: pods fail\x1b[0m" in coloured
    assert "\n  pods fail\n" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert all(line.count("\x1b[") % 2 == 0 for line in coloured.splitlines())


@pytest.mark.parametrize(
    ("terminal", "environment", "colour"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_unless_the_environment_decides(
    terminal: bool, environment: Mapping[str, str], colour: bool
) -> None:
    assert style_of(Terminal(terminal=terminal), environment).colour is colour


@pytest.mark.parametrize(
    ("columns", "terminal", "width"),
    [("72", 100, 72), ("10", 100, 40), ("500", 100, 120), ("", 90, 90), ("0", 90, 90), ("²", 90, 90), ("", 0, 80)],
)
def test_the_width_is_the_terminals_within_bounds(
    monkeypatch: pytest.MonkeyPatch, columns: str, terminal: int, width: int
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((terminal, 24)))
    assert style_of(Terminal(), {"COLUMNS": columns}).width == width


def test_without_any_terminal_the_width_is_80(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", none)
    assert style_of(Terminal(terminal=False), {}).width == 80


@pytest.mark.parametrize("width", [40, 73, 120])
def test_prose_keeps_to_the_width_even_without_blanks(width: int) -> None:
    diagnosis = Diagnosis((Finding("loaded", Severity.INFO, "x" * 300, evidence=("word " * 90,)),), (), "y" * 200)
    lines = format_diagnosis(diagnosis, facts(), Style(width)).splitlines()
    assert max(map(len, lines)) == width
    assert "".join(lines).count("x") == 300
    assert "".join(lines).count("word") == 90


def test_markup_and_controls_of_the_cluster_are_text() -> None:
    diagnosis = Diagnosis((Finding("loaded", Severity.INFO, "[red]\x1b[2J\u202e\r\n[/red]", "a\nb"),), (), "v")
    text = format_diagnosis(diagnosis, facts(), Style(colour=True))
    assert "[red]\\x1b[2J\\u202e [/red]" in text
    assert "a b" in text
    assert "\x1b[2J" not in text


def test_a_real_diagnosis_has_the_same_words_in_every_width() -> None:
    words = {tuple(format_diagnosis(judge(facts()), facts(), Style(width)).split()) for width in (60, 120)}
    assert len(words) == 1
