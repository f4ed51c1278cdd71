"""Admission: counts in total and per client, right after any sequence; failures, remembered for their time."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.forward.admission import LARGEST, MOST, REMEMBER, Admission, Failures


def test_a_client_gets_no_more_than_its_share() -> None:
    admission = Admission(total=10, per_client=2)
    assert [admission.admit("a") for _ in range(4)] == [True, True, False, False]
    assert admission.admit("b")
    assert len(admission) == 3


def test_all_together_get_no_more_than_the_whole() -> None:
    admission = Admission(total=3, per_client=2)
    assert [admission.admit(client) for client in "aabbc"] == [True, True, True, False, False]
    assert len(admission) == 3


def test_a_released_place_is_free_for_any_client() -> None:
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
def test_a_limit_of_zero_admits_no_query(total: int, per_client: int) -> None:
    admission = Admission(total=total, per_client=per_client)
    assert not admission.admit("a")
    assert len(admission) == 0


def test_clients_that_left_are_not_remembered() -> None:
    """A million forged addresses must leave nothing in memory."""
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


# --- failures ---


def test_failures_are_remembered_as_long_as_the_rfc_requires_and_not_longer() -> None:
    """RFC 9520 section 3.2: at least a second; a recovered upstream must be used within one second."""
    assert REMEMBER == 1.0


def test_a_failure_holds_for_its_time_and_for_its_query_alone() -> None:
    remembered = Failures()
    remembered.add(b"a", 10.0)
    assert [remembered.holds(b"a", now) for now in (10.0, 10.9, 11.0, 11.1, 99.0)] == [True, True, False, False, False]
    assert not remembered.holds(b"b", 10.0)
    assert not remembered.holds(b"A", 10.0)


def test_nothing_holds_where_nothing_failed() -> None:
    assert not Failures().holds(b"", 0.0)


def test_a_failure_that_comes_again_holds_from_then_on() -> None:
    remembered = Failures()
    remembered.add(b"a", 10.0)
    remembered.add(b"a", 10.8)
    assert remembered.holds(b"a", 11.5)
    remembered.forget_old(11.5)
    assert remembered.holds(b"a", 11.5)
    assert len(remembered.until) == 1


def test_what_is_old_is_let_go_of_and_the_rest_stays() -> None:
    remembered = Failures()
    for number in range(10):
        remembered.add(b"%d" % number, number / 10)
    remembered.forget_old(1.45)
    assert list(remembered.until) == [b"5", b"6", b"7", b"8", b"9"]
    remembered.forget_old(99.0)
    assert not remembered.until


def test_random_names_cannot_push_out_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dnsproxy.forward.admission.MOST", 3)
    remembered = Failures()
    for number in range(100):
        remembered.add(b"%d" % number, 10.0)
    assert list(remembered.until) == [b"0", b"1", b"2"]


def test_there_is_room_again_when_old_failures_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dnsproxy.forward.admission.MOST", 2)
    remembered = Failures()
    for name in (b"a", b"b", b"c"):
        remembered.add(name, 10.0)
    remembered.forget_old(11.0)
    remembered.add(b"c", 11.0)
    assert remembered.holds(b"c", 11.5)


def test_what_is_larger_than_a_query_ever_is_is_not_remembered() -> None:
    remembered = Failures()
    remembered.add(bytes(LARGEST), 10.0)
    remembered.add(bytes(LARGEST + 1), 10.0)
    assert [remembered.holds(bytes(size), 10.0) for size in (LARGEST, LARGEST + 1)] == [True, False]


def test_the_bound_is_one_that_a_small_pod_can_hold() -> None:
    assert MOST * LARGEST < 64 << 20


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "forget"]), st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), st.floats(0, 2)),
        max_size=50,
    )
)
def test_it_holds_what_failed_within_its_time_in_the_order_of_the_times(moves: list[tuple[str, bytes, float]]) -> None:
    """The law, with time that only goes forward: a query holds while its last stored failure is recent."""
    with mock.patch("dnsproxy.forward.admission.MOST", 3):
        remembered = Failures()
        expected: dict[bytes, float] = {}
        now = 0.0
        for move, key, later in moves:
            now += later
            if move == "forget":
                remembered.forget_old(now)
                expected = {key: until for key, until in expected.items() if until > now}
            else:
                remembered.add(key, now)
                if len(expected) < 3:
                    expected.pop(key, None)
                    expected[key] = now + REMEMBER
            assert len(remembered.until) <= 3
            assert list(remembered.until.items()) == list(expected.items())
            assert list(remembered.until.values()) == sorted(remembered.until.values())
            for name in (b"a", b"b", b"c", b"d", b"e"):
                assert remembered.holds(name, now) == (expected.get(name, 0.0) > now)
