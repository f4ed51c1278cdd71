"""The pace of a transfer: who is waited for, and who is not."""

from __future__ import annotations

import pytest

from dnsproxy.secondary.progress import LEAST, WINDOW, Progress


@pytest.mark.parametrize(
    ("chunks", "goes_on"),
    [
        pytest.param([(1, WINDOW / 2)], True, id="little, within the first window"),
        pytest.param([(LEAST, 1.0), (1, WINDOW)], True, id="enough in a window"),
        pytest.param([(LEAST - 1, WINDOW)], False, id="an octet too few in a window"),
        pytest.param([(1, float(second)) for second in range(1, int(WINDOW) + 1)], False, id="an octet a second"),
        pytest.param([(LEAST, WINDOW), (1, 2 * WINDOW)], False, id="a fast beginning excuses nothing later"),
        pytest.param([(LEAST, WINDOW), (LEAST, 2 * WINDOW)], True, id="enough in each window"),
    ],
)
def test_a_transfer_goes_on_while_each_window_brings_enough(chunks: list[tuple[int, float]], goes_on: bool) -> None:
    progress = Progress(0.0)
    assert [progress.note(octets, now) for octets, now in chunks][-1] is goes_on


def test_the_first_window_begins_with_the_transfer() -> None:
    progress = Progress(1_000.0)
    assert progress.note(1, 1_000.0 + WINDOW / 2)
    assert not progress.note(1, 1_000.0 + WINDOW)
