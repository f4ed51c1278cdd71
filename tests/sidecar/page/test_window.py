"""A page of many rows."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.page.window import Place, Window, find_window

START = Place()
KEYS = st.text("abc", max_size=4).filter(bool)


def found(keys: Iterable[str], *, words: str = "", place: Place = START, size: int = 3) -> Window[int]:
    steps = find_window(((key, len(key)) for key in keys), matches=lambda key, _: words in key, place=place, size=size)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            window: Window[int] = done.value
            return window


def keys_of(window: Window[int]) -> list[str]:
    return [key for key, _ in window.rows]


@given(st.sets(KEYS), st.sampled_from(["", "a", "bc", "x"]), st.integers(1, 5))
def test_pages_forward_and_back_are_the_sorted_rows_that_match(keys: set[str], words: str, size: int) -> None:
    expected = sorted(key for key in keys if words in key)
    window = found(keys, words=words, size=size)
    seen = keys_of(window)
    while window.later:
        assert window.earlier + len(window.rows) == len(seen)
        window = found(keys, words=words, size=size, place=Place(after=seen[-1]))
        seen += keys_of(window)
    assert (seen, window.total) == (expected, len(expected))
    back = keys_of(window)
    while window.earlier:
        window = found(keys, words=words, size=size, place=Place(before=back[0]))
        back = keys_of(window) + back
    assert back == expected


@given(st.sets(KEYS), st.text("abcx", max_size=4), st.booleans())
def test_any_place_adds_up(keys: set[str], edge: str, forward: bool) -> None:
    window = found(keys, place=Place(after=edge) if forward else Place(before=edge))
    assert window.earlier + len(window.rows) + window.later == window.total == len(keys)
    assert min(window.earlier, window.later) >= 0
    shown = keys_of(window)
    assert sorted(keys)[window.earlier : window.earlier + len(shown)] == shown


def test_many_rows_are_walked_through_in_many_steps() -> None:
    steps = find_window(((str(key), key) for key in range(10_000)), matches=lambda *_: True, place=Place(), size=50)
    assert sum(1 for _ in steps) >= 20


@pytest.mark.parametrize("place", [Place(), Place(after="zzz"), Place(before="a")], ids=["start", "beyond", "before"])
def test_nothing_is_found_in_nothing(place: Place) -> None:
    assert found([], place=place) == Window((), 0, 0)
