"""The exit status of a command that watches."""

from __future__ import annotations

import pytest

from sidecar.values.tally import Tally


@pytest.mark.parametrize(
    ("most", "seen", "complete", "status"),
    [
        pytest.param(None, 0, False, 1, id="nothing"),
        pytest.param(None, 1, False, 0, id="one is enough without a count"),
        pytest.param(None, 1_000, False, 0, id="without a count there is always more"),
        pytest.param(1, 0, False, 1, id="none of one"),
        pytest.param(1, 1, True, 0, id="one of one"),
        pytest.param(3, 2, False, 1, id="too few"),
        pytest.param(3, 3, True, 0, id="all"),
    ],
)
def test_enough_is_the_count_or_one(most: int | None, seen: int, complete: bool, status: int) -> None:
    tally = Tally(most)
    for _ in range(seen):
        tally.add()
    assert (tally.is_complete, tally.status) == (complete, status)
