from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.log_lines import whole_lines


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"a part", []),
        (b"one\n", ["one"]),
        (b"one\ntwo\na part", ["one", "two"]),
        (b"one\nhalf a character: \xc3", ["one"]),
    ],
)
def test_a_line_that_is_being_written_is_left_out(tmp_path: Path, written: bytes, lines: list[str]) -> None:
    (tmp_path / "log").write_bytes(written)
    assert whole_lines(tmp_path / "log") == lines
