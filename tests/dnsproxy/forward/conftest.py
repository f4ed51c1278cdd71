"""The clock of the tests of forwarding, and the protocols of their servers."""

from __future__ import annotations

import ssl

import pytest
from trio.testing import MockClock

from tests.dnsproxy.forward import certificates


@pytest.fixture
def clock() -> MockClock:
    """Time that passes when all tasks wait; the threshold gives data on loopback time to arrive."""
    return MockClock(autojump_threshold=0.02)


@pytest.fixture(params=[pytest.param(False, id="TCP"), pytest.param(True, id="TLS")])
def secured(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    """The protocol of the servers of a test."""
    return certificates.good() if request.param else None
