"""One stage for the attacks of tenants in a file.

Not for several files: its thread asks for the owner's name throughout, and other tests count their descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.tenants.rows import Stage, staged


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Started by the first test that uses it."""
    with staged(tmp_path_factory.mktemp("tenants")) as one:
        yield one
