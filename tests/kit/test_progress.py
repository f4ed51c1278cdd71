from __future__ import annotations

import io

from tests.kit.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_each_step_is_a_line() -> None:
    stream = io.StringIO()
    progress = Progress(2, stream=stream)
    progress.step("nsd")
    progress.note("nsd is slow")
    progress.step("ours")
    progress.finish()
    assert stream.getvalue() == "[1/2] nsd\nnsd is slow\n[2/2] ours\n"


def test_on_a_terminal_there_is_one_line_that_goes_away_and_notes_stay() -> None:
    stream = Terminal()
    progress = Progress(1, stream=stream)
    progress.step("nsd")
    progress.note("nsd is slow")
    progress.finish()
    shown = [part.removeprefix("\x1b[2K") for part in stream.getvalue().split("\r")]
    assert shown == ["", "[1/1] nsd", "nsd is slow\n", ""]
