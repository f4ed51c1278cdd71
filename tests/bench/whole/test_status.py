from __future__ import annotations

import io

import pytest

from tests.bench.whole.status import Status, format_left


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_each_step_is_a_line() -> None:
    stream = io.StringIO()
    status = Status(stream=stream)
    status.tell("dns: [1/2] nsd", 61)
    status.finish()
    assert stream.getvalue() == "2 min left  dns: [1/2] nsd\n"


def test_on_a_terminal_the_line_goes_away() -> None:
    stream = Terminal()
    status = Status(stream=stream)
    status.tell("x" * 1000, 61)
    status.finish()
    assert "\n" not in stream.getvalue()
    assert len(stream.getvalue()) < 1000
    assert stream.getvalue().endswith("\r\x1b[2K")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1 min left"), (60, "1 min left"), (1200, "20 min left"), (0, "over time"), (-5, "over time")],
)
def test_minutes_are_rounded_up(seconds: float, text: str) -> None:
    assert format_left(seconds) == text
