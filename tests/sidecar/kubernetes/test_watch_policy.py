"""The next request of a follower, and its time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, Gone, NotFound, ServerTrouble, TooManyRequests
from sidecar.kubernetes.watch_policy import (
    DEFAULT_PACE,
    Pace,
    Position,
    after_check,
    after_doubt,
    after_error,
    after_list,
    after_pages,
    after_watch,
    backoff,
    is_earlier,
    next_page_size,
)


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_pause_is_between_one_and_thirty_seconds(failures: int, random: float) -> None:
    """Never faster than once a second, never slower than twice a minute."""
    assert 1 <= backoff(failures, pace=DEFAULT_PACE, random=random) <= 30


def test_pause_doubles() -> None:
    """To the upper half of the limit, where it stays."""
    pauses = [backoff(failures, pace=DEFAULT_PACE, random=0.0) for failures in range(7)]
    assert pauses == [1, 2, 4, 8, 15, 15, 15]


def test_ten_minutes_of_outage_are_few_tries() -> None:
    """At most one in a second at first, then two to four in a minute."""
    position, passed, tries = Position(version="7"), 0.0, 0
    while passed < 600:
        position = fail(position, ServerTrouble("away"), version="7")
        passed += position.wait
        tries += 1
    assert tries <= 45
    assert position.version == "7"


def fail(position: Position, error: ApiError, *, version: str = "7", lasted: float = 0.0) -> Position:
    return after_error(position, error=error, version=version, lasted=lasted, pace=DEFAULT_PACE, random=0.0)


@pytest.mark.parametrize(
    ("error", "version"),
    [
        (ServerTrouble(""), "7"),
        (Forbidden(""), "7"),
        (TooManyRequests(""), "7"),
        (Gone(""), ""),
        (Garbled(""), ""),
        (NotFound(""), ""),
    ],
    ids=lambda value: value.cause if isinstance(value, ApiError) else "",
)
def test_watch_goes_on_where_that_can_help(error: ApiError, version: str) -> None:
    """And is replaced by a list where the same version would bring the same answer."""
    assert fail(Position(version="5"), error).version == version


def test_first_gone_costs_no_time_and_the_second_does() -> None:
    """A list that works in between proves nothing."""
    first = fail(Position(version="5"), Gone(""))
    assert (first.wait, first.version) == (0, "")
    second = fail(after_list(first, version="9", now=0), Gone(""))
    assert second.wait >= 1


def test_steady_watch_forgives_earlier_failures() -> None:
    """Whether it then ends well or badly."""
    failed = Position(version="5", failures=9)
    assert after_watch(failed, version="7", now=0, lasted=45, pace=DEFAULT_PACE).failures == 0
    assert fail(failed, ServerTrouble(""), lasted=30).wait == 1
    assert fail(failed, ServerTrouble(""), lasted=0.5).wait == 15


@pytest.mark.parametrize(("asked", "wait"), [(None, 1), (0.2, 1), (17.0, 17), (86_400.0, 300)])
def test_retry_after_is_obeyed_within_reason(asked: float | None, wait: float) -> None:
    """A day is a mistake of somebody's."""
    assert fail(Position(), TooManyRequests("", retry_after=asked)).wait == wait


def test_list_is_due_after_an_hour() -> None:
    """At the end of a watch, so nothing is interrupted."""
    position = after_list(Position(), version="7", now=1000)
    assert after_watch(position, version="8", now=1000 + 3599, lasted=45, pace=DEFAULT_PACE).version == "8"
    assert after_watch(position, version="8", now=1000 + 3600, lasted=45, pace=DEFAULT_PACE).version == ""


def test_doubt_lasts_until_a_list_is_believed() -> None:
    """An error in between does not count as confirmation, nor as its opposite."""
    doubted = after_doubt(after_pages(Position(), version="7"), pace=DEFAULT_PACE)
    assert doubted.doubted
    assert doubted.wait == DEFAULT_PACE.confirm
    assert fail(doubted, ServerTrouble(""), version="").doubted
    assert not after_list(doubted, version="7", now=0).doubted


@pytest.mark.parametrize(
    ("version", "than", "expected"),
    [
        pytest.param("9", "10", True, id="by value, not as text"),
        pytest.param("10", "9", False, id="later"),
        pytest.param("10", "10", False, id="the same"),
        pytest.param("9" * 5000, "1" + "0" * 5000, True, id="more digits than Python converts"),
        pytest.param("", "10", False, id="none"),
        pytest.param("10", "", False, id="nothing seen before"),
        pytest.param("0", "10", False, id="zero, which means any"),
        pytest.param("09", "10", False, id="a leading zero"),
        pytest.param("-9", "10", False, id="a sign"),
        pytest.param("9a", "aa", False, id="hexadecimal"),
        pytest.param("\u0669", "10", False, id="digits of another script"),
        pytest.param("etcd:9", "etcd:10", False, id="opaque"),
    ],
)
def test_versions_are_compared_if_both_are_decimal_numbers(version: str, than: str, expected: bool) -> None:
    assert is_earlier(version, than=than) is expected


@given(st.integers(1, 10**30), st.integers(1, 10**30))
def test_decimal_versions_compare_as_numbers(one: int, other: int) -> None:
    assert is_earlier(str(one), than=str(other)) is (one < other)


def check(position: Position, current: str, *, now: float = 1000) -> Position:
    return after_check(position, current=current, now=now, pace=DEFAULT_PACE)


LOST = Position(version="100", seen="100", unsure=True, listed_at=0)


@pytest.mark.parametrize("current", ["100", "101", "1000", "", "opaque"])
def test_a_server_with_the_version_is_watched_at_once(current: str) -> None:
    checked = check(LOST, current)
    assert (checked.version, checked.unsure, checked.wait) == ("100", False, 0)


def test_a_version_that_went_back_is_believed_at_the_second_look() -> None:
    first = check(LOST, "99")
    assert (first.version, first.unsure, first.wait) == ("100", True, DEFAULT_PACE.confirm)
    second = check(first, "98")
    assert (second.version, second.wait, second.seen) == ("", 0, "100")


def test_a_replica_that_lags_for_a_moment_causes_no_list() -> None:
    checked = check(check(LOST, "99"), "100")
    assert (checked.version, checked.unsure, checked.went_back) == ("100", False, False)


def test_an_error_between_two_looks_neither_confirms_nor_denies() -> None:
    failed = fail(check(LOST, "99"), ServerTrouble("away"), version="100")
    assert (failed.version, failed.unsure, failed.went_back) == ("100", True, True)


def test_lists_after_earlier_versions_are_half_a_minute_apart() -> None:
    """Behind replicas of a storage of which one never catches up, and connections that break all the time."""
    position, now, lists = LOST, 1000.0, 0
    while now < 1000 + 600:
        now += position.wait
        if not position.version:
            lists += 1
            position = after_list(position, version="90", now=now)
        elif position.unsure:
            position = check(position, "90", now=now)
        else:
            now += 1.5
            position = fail(replace(position, version="100"), ServerTrouble("cut"), version="100", lasted=1.5)
    assert lists <= 600 / DEFAULT_PACE.backoff_limit + 1


@pytest.mark.parametrize(
    ("lasted", "unsure"),
    [pytest.param(45.0, False, id="as long as asked"), pytest.param(44.0, True, id="a server that is shutting down")],
)
def test_a_watch_that_ended_in_order_is_followed_by_a_check_only_if_it_ended_early(lasted: float, unsure: bool) -> None:
    assert after_watch(LOST, version="101", now=0, lasted=lasted, pace=DEFAULT_PACE).unsure is unsure


@pytest.mark.parametrize(
    "error", [ServerTrouble(""), TooManyRequests(""), Forbidden("")], ids=lambda error: error.cause
)
def test_after_a_failed_watch_the_version_is_checked(error: ApiError) -> None:
    assert fail(Position(version="5"), error).unsure


@pytest.mark.parametrize(
    ("octets", "objects", "size"),
    [
        pytest.param(500 * 1_000, 500, 2_000, id="Ingresses"),
        pytest.param(500 * 100_000, 500, 20, id="large objects"),
        pytest.param(500 * 10, 500, 5_000, id="tiny ones"),
        pytest.param(5_000_000, 1, 1, id="one that is larger than a chunk"),
        pytest.param(100, 0, 5_000, id="none"),
        pytest.param(0, 0, 5_000, id="nothing at all"),
    ],
)
def test_next_chunk_of_a_list_is_of_about_so_many_octets(octets: int, objects: int, size: int) -> None:
    """Never of none, which would mean all."""
    assert next_page_size(octets=octets, objects=objects, pace=Pace(page_octets=2_000_000)) == size
