from __future__ import annotations

import pytest

from tests.bench.fleet.crowd import Event
from tests.bench.fleet.versions import lags

A, B = "127.1.0.1", "127.1.0.2"
PUBLISHED = [(0.0, 10), (1.0, 11), (2.0, 13)]


def test_each_version_counts_for_each_secondary_from_its_publication_to_the_secondary() -> None:
    events = [Event(A, 11, 1.25), Event(B, 11, 1.5), Event(A, 13, 2.125), Event(B, 13, 2.5)]
    assert sorted(lags(PUBLISHED, events)) == [0.125, 0.25, 0.5, 0.5]


def test_a_later_version_stands_for_those_before_it() -> None:
    assert sorted(lags(PUBLISHED, [Event(A, 13, 3.0)])) == [1.0, 2.0]


def test_a_version_that_the_watcher_did_not_see_counts_as_the_one_before() -> None:
    assert lags(PUBLISHED, [Event(A, 12, 1.5)]) == [0.5]


def test_serials_are_a_circle() -> None:
    published = [(0.0, 0xFFFF_FFFF), (1.0, 1), (2.0, 2)]
    assert lags(published, [Event(A, 1, 1.5), Event(A, 2, 2.25)]) == [0.5, 0.25]


@pytest.mark.parametrize(("published", "events"), [([], []), (PUBLISHED, []), (PUBLISHED[:1], [Event(A, 10, 1.0)])])
def test_without_a_version_after_the_first_there_is_no_lag(
    published: list[tuple[float, int]], events: list[Event]
) -> None:
    assert lags(published, events) == []
