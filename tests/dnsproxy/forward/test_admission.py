"""Admission: a count in all and for each client, right after any order of comings and goings."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.forward.admission import Admission


def test_a_client_gets_no_more_than_its_share() -> None:
    admission = Admission(total=10, per_client=2)
    assert [admission.admit("a") for _ in range(4)] == [True, True, False, False]
    assert admission.admit("b")
    assert len(admission) == 3


def test_all_together_get_no_more_than_the_whole() -> None:
    admission = Admission(total=3, per_client=2)
    assert [admission.admit(client) for client in "aabbc"] == [True, True, True, False, False]
    assert len(admission) == 3


def test_a_place_that_is_released_is_free_for_anybody() -> None:
    admission = Admission(total=2, per_client=1)
    assert [admission.admit(client) for client in "aabc"] == [True, False, True, False]
    admission.release("a")
    assert admission.admit("c")
    admission.release("b")
    admission.release("c")
    assert admission.admit("a")
    assert len(admission) == 1


def test_what_was_not_admitted_counts_for_nothing() -> None:
    admission = Admission(total=5, per_client=1)
    admission.admit("a")
    for _ in range(10):
        assert not admission.admit("a")
    admission.release("a")
    assert len(admission) == 0
    assert admission.admit("a")


@pytest.mark.parametrize(("total", "per_client"), [(0, 5), (5, 0), (0, 0)])
def test_a_cap_of_nothing_admits_nobody(total: int, per_client: int) -> None:
    admission = Admission(total=total, per_client=per_client)
    assert not admission.admit("a")
    assert len(admission) == 0


def test_clients_that_left_are_not_remembered() -> None:
    """A million forged addresses must not stay behind."""
    admission = Admission(total=10, per_client=2)
    for number in range(1000):
        assert admission.admit(number)
        admission.release(number)
    assert not admission._clients


@given(
    st.integers(0, 6),
    st.integers(0, 4),
    st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=60),
)
def test_it_counts_like_a_list_of_those_who_wait(total: int, per_client: int, moves: list[tuple[bool, str]]) -> None:
    admission = Admission(total=total, per_client=per_client)
    waiting: list[str] = []
    for comes, client in moves:
        if comes:
            fits = len(waiting) < total and Counter(waiting)[client] < per_client
            assert admission.admit(client) == fits
            waiting += [client] * fits
        elif client in waiting:
            admission.release(client)
            waiting.remove(client)
        assert len(admission) == len(waiting)
