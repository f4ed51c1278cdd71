"""What all files here share: one API server, and one stage each for the doctor and for operate.

The stage for the attacks of tenants is a file's own: its thread asks for the owner's name throughout, and other tests
count their descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.apiserver import apiserver
from tests.kit.doctor_stage.stage import doctor_stage
from tests.kit.networks import root
from tests.kit.operate_stage.stage import operate_stage
from tests.kit.tenants.rows import Stage, staged

__all__ = ["apiserver", "doctor_stage", "operate_stage", "root"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Started by the first test that uses it."""
    with staged(tmp_path_factory.mktemp("tenants")) as one:
        yield one
