"""The stage that the tests of this folder share."""

from __future__ import annotations

from tests.kit.doctor_stage.stage import doctor_stage
from tests.kit.networks import root

__all__ = ["doctor_stage", "root"]
