"""The exit status by what was shown."""

from __future__ import annotations

import pytest

from dnsproxy.tap_command.tally import Tally
from sidecar.values.exit_status import ExitStatus


@pytest.mark.parametrize(
    ("wanted", "shown", "status", "complete"),
    [
        pytest.param(None, 0, ExitStatus.NO, False, id="nothing came"),
        pytest.param(None, 1, ExitStatus.DONE, False, id="one is enough without a count"),
        pytest.param(None, 9, ExitStatus.DONE, False, id="the user decides when to end"),
        pytest.param(3, 0, ExitStatus.NO, False, id="nothing of three"),
        pytest.param(3, 2, ExitStatus.NO, False, id="fewer than asked for"),
        pytest.param(3, 3, ExitStatus.DONE, True, id="as many as asked for"),
        pytest.param(1, 1, ExitStatus.DONE, True, id="the one"),
    ],
)
def test_the_status_says_whether_enough_was_seen(
    wanted: int | None, shown: int, status: ExitStatus, complete: bool
) -> None:
    tally = Tally(wanted)
    for _ in range(shown):
        tally.add()
    assert (tally.status, tally.is_complete) == (status, complete)
