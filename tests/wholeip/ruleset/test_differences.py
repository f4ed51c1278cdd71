"""Differences by element, and the transactions that end them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.wholeip_kernel import after
from tests.wholeip.ruleset.rulesets import rulesets
from wholeip.ruleset.differences import Difference, find_differences, make_repair
from wholeip.ruleset.ruleset import Ruleset, changes, make_ruleset
from wholeip.ruleset.steps import at_once


def ruleset(**elements: dict[str, str]) -> Ruleset:
    empty = make_ruleset([])
    return Ruleset(empty.table, {**empty.elements, **elements})


def test_each_sort_of_difference_is_found() -> None:
    current = ruleset(whole_v4={"a": "1", "b": "2", "c": "3"}, here_v4={"x": ""})
    desired = ruleset(whole_v4={"a": "1", "b": "9", "d": "4"}, here_v4={"x": ""})
    assert at_once(find_differences(current, desired)) == [
        Difference("whole_v4", "c", "3", None),
        Difference("whole_v4", "b", "2", "9"),
        Difference("whole_v4", "d", None, "4"),
    ]


def test_no_difference_is_an_empty_transaction() -> None:
    assert not make_repair("t", [])


@given(rulesets(), rulesets())
def test_all_differences_together_are_the_changes(current: Ruleset, desired: Ruleset) -> None:
    found = at_once(find_differences(current, desired))
    assert make_repair(current.table, found) == changes(current, desired)


@given(rulesets(), rulesets(), st.integers(1, 5))
def test_some_after_the_others_lead_to_the_same(current: Ruleset, desired: Ruleset, size: int) -> None:
    found, kernel = at_once(find_differences(current, desired)), current
    for first in range(0, len(found), size):
        kernel = after(kernel, make_repair(kernel.table, found[first : first + size]))
    assert kernel == desired
