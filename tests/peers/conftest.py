"""One stage for the attacks of tenants in all files that a worker runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.tenants.rows import Stage, staged


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Started by the first test that uses it."""
    with staged(tmp_path_factory.mktemp("tenants")) as one:
        yield one
