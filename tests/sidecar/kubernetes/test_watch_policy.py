"""The next request of a follower, and its time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, Gone, NotFound, ServerTrouble, TooManyRequests
from sidecar.kubernetes.watch_policy import (
    DEFAULT_PACE,
    Pace,
    Position,
    after_doubt,
    after_error,
    after_list,
    after_watch,
    backoff,
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
    assert after_watch(failed, version="7", now=0, pace=DEFAULT_PACE).failures == 0
    assert fail(failed, ServerTrouble(""), lasted=30).wait == 1
    assert fail(failed, ServerTrouble(""), lasted=0.5).wait == 15


@pytest.mark.parametrize(("asked", "wait"), [(None, 1), (0.2, 1), (17.0, 17), (86_400.0, 300)])
def test_retry_after_is_obeyed_within_reason(asked: float | None, wait: float) -> None:
    """A day is a mistake of somebody's."""
    assert fail(Position(), TooManyRequests("", retry_after=asked)).wait == wait


def test_list_is_due_after_an_hour() -> None:
    """At the end of a watch, so nothing is interrupted."""
    position = after_list(Position(), version="7", now=1000)
    assert after_watch(position, version="8", now=1000 + 3599, pace=DEFAULT_PACE).version == "8"
    assert after_watch(position, version="8", now=1000 + 3600, pace=DEFAULT_PACE).version == ""


def test_doubt_lasts_until_a_list_is_believed() -> None:
    """An error in between does not count as confirmation, nor as its opposite."""
    doubted = after_doubt(Position(), pace=DEFAULT_PACE)
    assert doubted.doubted
    assert doubted.wait == DEFAULT_PACE.confirm
    assert fail(doubted, ServerTrouble(""), version="").doubted
    assert not after_list(doubted, version="7", now=0).doubted


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
