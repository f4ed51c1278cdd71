"""The clock of tests whose servers are real sockets in the same process."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from trio.testing import MockClock

_SOFTNET: Final = Path("/proc/net/softnet_stat")
_BACKLOG: Final = 11


@pytest.fixture
def clock() -> MockClock:
    """Time that passes when all tasks wait and loopback has delivered all data."""
    clock = MockClock(autojump_threshold=0.02)
    jump = clock._autojump

    def jump_if_delivered() -> None:
        if not on_the_way():
            jump()

    # trio has no public way to hold a jump back (https://github.com/python-trio/trio/issues/1587).
    clock._autojump = jump_if_delivered  # type: ignore[method-assign]
    return clock


def on_the_way() -> bool:
    """Whether packets wait for a processor: on a busy one, ksoftirqd may not run for longer than the threshold.

    The column is softnet_backlog_len, since Linux 5.10 (net/core/net-procfs.c); elsewhere the threshold alone decides.
    """
    try:
        rows = [line.split() for line in _SOFTNET.read_text(encoding="ascii").splitlines()]
    except OSError:
        return False
    return any(int(row[_BACKLOG], 16) > 0 for row in rows if len(row) > _BACKLOG)
