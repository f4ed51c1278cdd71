"""The conditions of an endpoint in one word, and which endpoints get connections. Also tests endpoint_slices.py."""

from __future__ import annotations

from itertools import product

import pytest

from sidecar.kubernetes.endpoint_choice import USABLE, preferred
from sidecar.kubernetes.endpoint_slices import Condition, Conditions, SliceEndpoint, condition_of


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param(None, Condition.READY, id="no conditions"),
        pytest.param(Conditions(), Condition.READY, id="nothing is known"),
        pytest.param(Conditions(ready=True, serving=True, terminating=False), Condition.READY, id="ready"),
        pytest.param(Conditions(ready=False, serving=True), Condition.NOT_READY, id="serving alone is not enough"),
        pytest.param(Conditions(ready=False, serving=True, terminating=True), Condition.LEAVING, id="leaving"),
        pytest.param(Conditions(ready=False, serving=False, terminating=True), Condition.TERMINATING, id="gone"),
        pytest.param(Conditions(ready=True, serving=False, terminating=True), Condition.LEAVING, id="published"),
        pytest.param(Conditions(terminating=True), Condition.LEAVING, id="unknown serving counts as ready"),
        pytest.param(Conditions(ready=False, terminating=True), Condition.TERMINATING, id="as it is not ready"),
    ],
)
def test_an_endpoint_has_one_condition(conditions: Conditions | None, expected: Condition) -> None:
    assert condition_of(SliceEndpoint(conditions=conditions)) is expected


def test_nothing_that_neither_is_ready_nor_serves_is_usable() -> None:
    for ready, serving, terminating in product((True, False, None), repeat=3):
        condition = condition_of(SliceEndpoint(conditions=Conditions(ready, serving, terminating)))
        assert not (condition in USABLE and ready is False and serving is False)


@pytest.mark.parametrize(
    ("ready", "leaving", "expected"),
    [(("a",), ("b",), ("a",)), (("a",), (), ("a",)), ((), ("b",), ("b",)), ((), (), ())],
    ids=["both", "only ready", "only leaving", "none"],
)
def test_what_terminates_comes_only_in_place_of_nothing(
    ready: tuple[str, ...], leaving: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert preferred(ready=ready, leaving=leaving) == expected
