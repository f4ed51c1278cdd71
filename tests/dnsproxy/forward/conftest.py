"""The protocols of the servers of the tests of forwarding."""

from __future__ import annotations

import ssl

import pytest

from tests.dnsproxy.forward import certificates


@pytest.fixture(params=[pytest.param(False, id="TCP"), pytest.param(True, id="TLS")])
def secured(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    """The protocol of the servers of a test."""
    return certificates.good() if request.param else None
