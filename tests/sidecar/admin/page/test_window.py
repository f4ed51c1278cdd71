"""One page of many rows, through window.py and index.py."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.admin.page.index import Index, Rows
from sidecar.admin.page.window import Place, Window, Words, count_lines, find_lines

START = Place()
KEYS = st.text("abc", max_size=4).filter(bool)


def index_of(keys: Iterable[str], texts: Mapping[str, tuple[str, ...]] | None = None, *, block: int = 2) -> Index:
    """An index of so small blocks that a few rows fill several."""
    return Index(
        Rows(lambda: keys, lambda: keys, lambda key, whole: texts[key][whole:] if texts else (key,)), block=block
    )


def outcome(steps: Generator[None, None, Window]) -> Window:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            window: Window = done.value
            return window


def found(keys: Iterable[str], *, words: str = "", place: Place = START, size: int = 3) -> Window:
    return outcome(index_of(keys).find(Words(words), place, size=size))


def keys_of(window: Window) -> list[str]:
    return list(window.keys)


@given(st.sets(KEYS), st.sampled_from(["", "a", "bc", "x"]), st.integers(1, 5))
def test_pages_forward_and_back_are_the_sorted_rows_that_match(keys: set[str], words: str, size: int) -> None:
    expected = sorted(key for key in keys if words in key)
    window = found(keys, words=words, size=size)
    seen = keys_of(window)
    while window.later:
        assert window.earlier + len(window.keys) == len(seen)
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
    assert window.earlier + len(window.keys) + window.later == window.total == len(keys)
    assert min(window.earlier, window.later) >= 0
    shown = keys_of(window)
    assert sorted(keys)[window.earlier : window.earlier + len(shown)] == shown


def test_many_rows_are_walked_through_in_many_steps() -> None:
    keys = [str(key) for key in range(10_000)]
    steps = Index(Rows(lambda: keys, lambda: keys, lambda key, _: (key,))).find(Words(""), Place(), size=50)
    assert sum(1 for _ in steps) >= 20


@pytest.mark.parametrize("place", [Place(), Place(after="zzz"), Place(before="a")], ids=["start", "beyond", "before"])
def test_nothing_is_found_in_nothing(place: Place) -> None:
    assert found([], place=place) == Window((), 0, 0)


TEXTS = st.text("ab/ \n\t\u2028\u0131", max_size=6)
WORDS = TEXTS.map(lambda text: " ".join(text.split()))


@given(st.dictionaries(KEYS, st.tuples(TEXTS, TEXTS, TEXTS)), WORDS, st.booleans(), KEYS, st.booleans())
def test_a_search_finds_what_has_the_words_in_any_one_of_its_texts(
    rows: dict[str, tuple[str, ...]], words: str, whole: bool, edge: str, forward: bool
) -> None:
    index = index_of(rows, rows)
    expected = sorted(key for key, texts in rows.items() if any(words in text for text in texts[whole:]))
    inside = [key for key in expected if (key > edge if forward else key < edge)]
    # Twice: what is counted once is not counted again.
    for _ in range(2):
        window = outcome(index.find(Words(words, whole), Place(edge) if forward else Place(before=edge), size=3))
        assert keys_of(window) == (inside[:3] if forward else inside[-3:])
        assert window.total == len(expected)
        assert expected[window.earlier : window.earlier + len(window.keys)] == keys_of(window)


@given(st.lists(st.text("ab", max_size=6), min_size=1), st.text("ab", min_size=1, max_size=3))
def test_lines_with_words_are_counted_and_found(lines: list[str], words: str) -> None:
    text = "\n".join(lines)
    expected = [number for number, line in enumerate(lines) if words in line]
    assert list(find_lines(text, words)) == expected
    assert count_lines(text, words, lines=len(lines)) == len(expected)


def test_more_searches_than_are_remembered_are_all_right() -> None:
    index = index_of(["a", "ab", "b"])
    for number in [*range(100), 0]:
        assert outcome(index.find(Words(f"b{number}" if number else "b"), START, size=3)).total == (0 if number else 2)


def test_those_who_search_at_the_same_time_share_the_work() -> None:
    made: list[str] = []
    keys = [f"{number:04}" for number in range(2_000)]

    def text_of(key: str, _: bool) -> tuple[str]:
        made.append(key)
        return (key,)

    index = Index(Rows(lambda: iter(keys), lambda: keys, text_of))
    searches = [index.find(Words(str(number)), START, size=3) for number in range(9)]
    running = dict.fromkeys(searches)
    totals = []
    while running:
        for search in list(running):
            try:
                next(search)
            except StopIteration as done:
                totals.append(done.value.total)
                del running[search]
    assert sorted(totals) == sorted(sum(str(number) in key for key in keys) for number in range(9))
    assert sorted(made) == keys


def test_who_leaves_in_the_middle_leaves_his_part_to_the_others() -> None:
    index = index_of([f"{number}" for number in range(3_000)], block=400)
    for _ in range(5):
        left = index.find(Words(""), START, size=3)
        next(left)
        left.close()
    assert outcome(index.find(Words(""), START, size=3)).total == index.size == 3_000


@pytest.mark.parametrize("words", ["", "h"])
def test_rows_that_change_again_and_again_are_copied(words: str) -> None:
    rows = {f"h{number}": None for number in range(2_500)}
    steps = Index(Rows(lambda: iter(rows), lambda: list(rows), lambda key, _: (key,))).find(Words(words), START, size=3)
    for number in range(20):
        next(steps)
        rows[f"new-{number}"] = None
    total = outcome(steps).total
    assert 2_500 <= total <= 2_520


@given(
    st.dictionaries(KEYS, st.tuples(TEXTS, TEXTS)),
    st.lists(st.dictionaries(KEYS, st.none() | st.tuples(TEXTS, TEXTS), max_size=8), max_size=4),
    WORDS,
    st.booleans(),
)
def test_an_index_after_changes_is_one_of_what_is_there_then(
    rows: dict[str, tuple[str, ...]], changes: list[dict[str, tuple[str, ...] | None]], words: str, whole: bool
) -> None:
    rows = dict(rows)
    index = index_of(list(rows), rows)
    before = outcome(index.find(Words(words, whole), START, size=100))
    indexes = [index]
    for change in changes:
        for key, texts in change.items():
            if texts is None:
                rows.pop(key, None)
            else:
                rows[key] = texts
        indexes.append(indexes[-1].after({key: texts is not None for key, texts in change.items()}))
        after = outcome(indexes[-1].find(Words(words, whole), START, size=100))
        assert keys_of(after) == sorted(
            key for key, texts in rows.items() if any(words in one for one in texts[whole:])
        )
        assert indexes[-1].size == len(rows)
    assert outcome(index.find(Words(words, whole), START, size=100)) == before


def test_after_a_change_only_what_it_touches_is_made_anew() -> None:
    made: list[str] = []
    keys = [f"{number:04}" for number in range(4_000)]

    def text_of(key: str, _: bool) -> tuple[str]:
        made.append(key)
        return (key,)

    index = Index(Rows(lambda: iter(keys), lambda: keys, text_of))
    assert outcome(index.find(Words("1"), START, size=3)).total == sum("1" in key for key in keys)
    made.clear()
    after = index.after({"0001": False, "3999": True})
    assert outcome(after.find(Words("0001"), START, size=3)).total == 0
    assert len(made) < 1_000
