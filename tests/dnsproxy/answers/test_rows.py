"""Rows that are handed out: they hold what was put, and stay as they were while somebody has them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.rows import Rows

KEYS = [bytes([number]) for number in range(30)]
PutList = list[tuple[bytes, int | None]]
PUTS = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | st.integers(0, 3)), max_size=6)


@given(st.lists(st.tuples(PUTS, st.booleans()), max_size=20))
def test_rows_are_what_was_put_and_what_somebody_has_stays_as_it_was(rounds: list[tuple[PutList, bool]]) -> None:
    """Of what is handed out, some is kept, and some goes before the next is handed out."""
    rows: Rows[int] = Rows()
    expected: dict[bytes, int] = {}
    kept: list[tuple[Mapping[bytes, int], dict[bytes, int]]] = []
    free = True
    for key in KEYS:
        rows.put(key, 9)
        expected[key] = 9
    for puts, is_kept in rounds:
        for key, value in puts:
            rows.put(key, value)
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        out = rows.hand_out()
        assert (out, len(rows), rows.get(KEYS[0])) == (expected, len(expected), expected.get(KEYS[0]))
        if is_kept:
            kept.append((out, dict(out)))
        rows.go_on(free=free)
        free = not is_kept
        assert all(out == before for out, before in kept)


@pytest.mark.parametrize(
    ("changed", "free", "again"),
    [
        pytest.param(1, True, True, id="nobody has it"),
        pytest.param(1, False, False, id="somebody has it"),
        pytest.param(30, True, False, id="nearly all has changed"),
    ],
)
def test_what_nobody_has_any_more_is_handed_out_again(changed: int, free: bool, again: bool) -> None:
    rows: Rows[int] = Rows()
    for key in KEYS:
        rows.put(key, 9)
    first = rows.hand_out()
    rows.go_on(free=True)
    for key in KEYS[:changed]:
        rows.put(key, 1)
    second = rows.hand_out()
    rows.go_on(free=free)
    third = rows.hand_out()
    assert third is not second
    assert third == second
    assert (third is first) is again


def test_a_value_that_is_none_is_no_row() -> None:
    rows: Rows[int] = Rows()
    rows.put(b"a", None)
    assert (len(rows), rows.get(b"a"), rows.hand_out()) == (0, None, {})
