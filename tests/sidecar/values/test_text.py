"""Foreign text made safe to show, and the choice of colour."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.values.text import align_columns, colour_choice, escape_controls, message_of, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("grün 東京", "grün 東京", id="letters of the world"),
        pytest.param("\x1b[2J", "\\x1b[2J", id="escape sequence"),
        pytest.param("a\nb\r\tc\0", "a\\nb\\r\\tc\\x00", id="C0"),
        pytest.param("\x7f\x9b", "\\x7f\\x9b", id="DEL and C1"),
        pytest.param("\u202eevil\u2066", "\\u202eevil\\u2066", id="bidirectional overrides"),
        pytest.param("a\u2028b", "a\\u2028b", id="line separator"),
        pytest.param("\ud800", "\\ud800", id="half a character"),
    ],
)
def test_what_drives_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_what_is_kept_stays() -> None:
    assert escape_controls("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_lines_become_one() -> None:
    assert one_line("  one\n two \r\n\x1b three ") == "one two \\x1b three"


@pytest.mark.parametrize(
    ("rows", "widest", "lines"),
    [
        pytest.param([["NAME", "OF"], ["a", "b"]], None, ["NAME  OF", "a     b"], id="below each other"),
        pytest.param([["a", ""]], None, ["a"], id="nothing at the end"),
        pytest.param([["long", "x"], ["a", "y"]], 2, ["long  x", "a   y"], id="one that is too long"),
        pytest.param([], None, [], id="nothing"),
    ],
)
def test_columns_are_aligned(rows: list[list[str]], widest: int | None, lines: list[str]) -> None:
    assert list(align_columns(rows, widest=widest)) == lines


@given(st.text())
def test_any_text_becomes_printable_and_encodable(text: str) -> None:
    for shown in (escape_controls(text), one_line(text)):
        assert not any(unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp", "Cs"} for character in shown)
        shown.encode()


@pytest.mark.parametrize(
    ("environment", "choice"),
    [
        pytest.param({}, None, id="nothing said"),
        pytest.param({"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param({"NO_COLOR": ""}, None, id="empty NO_COLOR"),
        pytest.param({"TERM": "dumb"}, False, id="dumb terminal"),
        pytest.param({"FORCE_COLOR": "1"}, True, id="FORCE_COLOR"),
        pytest.param({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, id="both"),
    ],
)
def test_the_environment_chooses_colour(environment: dict[str, str], choice: bool | None) -> None:
    assert colour_choice(environment) is choice


def test_the_message_of_a_library_is_one_short_line() -> None:
    assert message_of(ValueError("a\n\x1bb")) == "a \\x1bb"
    assert len(message_of(ValueError("x" * 200_000))) < 400
