"""Polling: it ends with the condition, or fails with its name."""

from __future__ import annotations

import pytest

from tests.kit.polling import poll_until


def test_it_ends_at_the_first_look_that_finds_the_condition() -> None:
    looks = iter([0, "", "found", "never looked at"])
    poll_until(lambda: next(looks), "found", seconds=60)
    assert list(looks) == ["never looked at"]


def test_a_condition_that_stays_false_fails_with_its_name() -> None:
    with pytest.raises(AssertionError, match="not within 0 s: the moon is green"):
        poll_until(lambda: False, "the moon is green", seconds=0)
