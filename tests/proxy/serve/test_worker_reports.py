"""Reports of workers, parsed and added up."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.health import Cause
from proxy.relay.counters import Counters
from proxy.serve.worker_reports import (
    LONGEST_BACKOFF,
    Report,
    add_up,
    backoff,
    format_report,
    keep_totals,
    parse_report,
    share_of,
)

counts = st.integers(0, 2**62)
counters = st.builds(
    Counters,
    counts,
    counts,
    counts,
    counts,
    counts,
    counts,
    st.fixed_dictionaries(dict.fromkeys(Cause, counts)),
)


failures = st.dictionaries(st.integers(1, 65_535), st.text())


@given(st.builds(Report, counts, counters, st.none() | st.text(), failures))
def test_a_report_is_one_line_that_is_read_back(report: Report) -> None:
    line = format_report(report)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert parse_report(line) == report


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{}", id="no figures"),
        pytest.param(b'{"limit": 1}', id="no counters"),
        pytest.param(b'{"limit": "1", "counters": {}}', id="text for a number"),
        pytest.param(b'{"limit": 1, "counters": {"backend_errors": {"sunspots": 1}}}', id="unknown cause"),
        pytest.param(format_report(Report(1, Counters()))[:-10], id="cut"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_what_is_no_report_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_report(line)


@given(st.lists(counters, max_size=5))
def test_sums_have_every_figure(parts: list[Counters]) -> None:
    into = Counters()
    add_up(into, parts)
    for name, value in asdict(into).items():
        if name != "backend_errors":
            assert value == sum(getattr(part, name) for part in parts)
    for cause in Cause:
        assert into.backend_errors[cause] == sum(part.backend_errors[cause] for part in parts)


@given(counters, counters)
def test_a_sum_may_be_added_to(one: Counters, other: Counters) -> None:
    expected = Counters()
    add_up(expected, [one, other])
    add_up(one, [one, other])
    assert one == expected


@given(counters)
def test_what_was_open_in_a_worker_ends_with_it_and_nothing_else_does(one: Counters) -> None:
    before = asdict(one)
    keep_totals(one)
    assert asdict(one) == {**before, "active": 0}


@given(st.integers(1, 10_000))
def test_each_end_waits_at_least_as_long_as_the_one_before_and_never_for_ever(ends: int) -> None:
    assert 0 < backoff(ends) <= backoff(ends + 1) <= LONGEST_BACKOFF


def test_the_first_end_waits_shortly_and_many_as_long_as_there_is() -> None:
    assert backoff(1) < 0.5
    assert backoff(20) == LONGEST_BACKOFF


@given(st.integers(1, 10**6), st.integers(1, 100))
def test_shares_are_alike_and_no_less_than_the_whole_together(whole: int, workers: int) -> None:
    share = share_of(whole, workers=workers)
    assert share is not None
    assert whole <= share * workers < whole + workers


def test_what_has_no_bound_has_none_for_a_worker() -> None:
    assert share_of(None, workers=4) is None
