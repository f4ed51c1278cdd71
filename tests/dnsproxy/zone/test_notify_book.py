"""Whom to tell and when: until each has the version, at longer and longer intervals, and never twice in a pause."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.zone.notify_book import FIRST_RETRY, LONGEST_RETRY, PAUSE, NotifyBook


def book_of(*targets: str, serial: int = 1) -> NotifyBook[str]:
    book: NotifyBook[str] = NotifyBook()
    book.set_targets(targets)
    if serial:
        book.publish(serial, now=100.0)
    return book


def tell(book: NotifyBook[str], now: float) -> list[str]:
    found = book.due(now)
    for target in found:
        book.told(target, now=now)
    return found


def test_before_the_first_version_nobody_is_told() -> None:
    book = book_of("a", serial=0)
    assert (book.due(inf), book.next_due(), book.behind) == ([], inf, 0)


def test_one_that_does_not_ask_is_told_again_at_longer_and_longer_intervals() -> None:
    book, now, waits = book_of("a"), 100.0, []
    for _ in range(9):
        assert tell(book, now) == ["a"]
        assert tell(book, now) == []
        waits.append(book.next_due() - now)
        now = book.next_due()
    assert waits[:3] == [FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY]
    assert waits[-2:] == [LONGEST_RETRY] * 2


def test_one_that_has_the_version_is_not_told_until_the_next() -> None:
    book = book_of("a", "b")
    book.has("a", 1)
    assert (tell(book, 100.0), book.behind) == (["b"], 1)
    book.has("b", 1)
    assert (book.next_due(), book.behind) == (inf, 0)
    book.publish(2, now=200.0)
    assert (sorted(tell(book, 200.0)), book.behind) == (["a", "b"], 2)
    book.has("a", 1)
    assert book.behind == 2


def test_many_versions_at_once_are_told_together() -> None:
    book = book_of("a")
    assert tell(book, 100.0) == ["a"]
    for serial in range(2, 50):
        book.publish(serial, now=100.0 + serial / 1000)
    assert book.next_due() == 100.0 + PAUSE
    assert tell(book, 100.0 + PAUSE) == ["a"]


def test_one_that_refuses_the_zone_is_not_told_until_it_asks() -> None:
    book = book_of("a", "b")
    book.refused("a")
    book.publish(2, now=101.0)
    assert tell(book, 101.0) == ["b"]
    book.has("a", 2)
    book.publish(3, now=200.0)
    assert sorted(tell(book, 200.0)) == ["a", "b"]


def test_of_two_at_one_address_the_one_whose_notify_was_lost_is_told_again() -> None:
    book = book_of("a", "b")
    assert sorted(tell(book, 100.0)) == ["a", "b"]
    book.agreed("a", 1)
    assert book.behind == 2
    book.has_one_of(["a", "b"], 1)
    assert (tell(book, 101.0), book.behind) == (["b"], 1)
    book.agreed("b", 1)
    assert (book.next_due(), book.behind) == (inf, 0)
    # What they agreed to before says nothing of the next version, in either order.
    book.publish(2, now=200.0)
    book.has_one_of(["a", "b"], 2)
    book.agreed("b", 1)
    assert (sorted(tell(book, 200.5)), book.behind) == (["a", "b"], 2)
    book.agreed("b", 2)
    assert (tell(book, 202.0), book.behind) == (["a"], 1)


def test_new_ones_are_told_at_once_and_old_ones_keep_their_state() -> None:
    book = book_of("a", "gone")
    book.has("a", 1)
    book.set_targets(["a", "new"])
    assert tell(book, 100.0) == ["new"]
    for name in ("gone", "stranger"):
        book.has(name, 1)
        book.refused(name)
        book.told(name, now=1.0)


EVENTS = st.lists(
    st.tuples(st.sampled_from(["publish", "has", "refused", "tell"]), st.sampled_from("ab"), st.floats(0, 90))
)


@given(EVENTS)
def test_nobody_is_told_twice_within_a_pause_and_all_are_told_in_the_end(events: list[tuple[str, str, float]]) -> None:
    book, now, told = book_of("a", "b"), 100.0, {"a": -inf, "b": -inf}
    for kind, target, wait in events:
        now += wait
        if kind == "publish":
            book.publish(book.serial + 1, now=now)
        elif kind == "has":
            book.has(target, book.serial)
        elif kind == "refused":
            book.refused(target)
        else:
            for one in tell(book, now):
                assert now - told[one] >= PAUSE
                told[one] = now
    for target in "ab":
        book.has(target, book.serial)
    book.publish(book.serial + 1, now=now)
    assert sorted(book.due(now + PAUSE)) == ["a", "b"]
