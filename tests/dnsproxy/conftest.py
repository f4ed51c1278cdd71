"""The clock of tests whose servers are real sockets in the same process."""

from __future__ import annotations

import pytest
from trio.testing import MockClock


@pytest.fixture
def clock() -> MockClock:
    """Time that passes when all tasks wait; the threshold gives data on loopback time to arrive."""
    return MockClock(autojump_threshold=0.02)
