"""Which queued queries are too old to be forwarded."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.server.stale import STALE, is_stale


@pytest.mark.parametrize(
    ("age", "gap", "stale"),
    [
        pytest.param(0.0, 60.0, False, id="it came just now"),
        pytest.param(1.9, 60.0, False, id="CoreDNS still waits"),
        pytest.param(2.1, 60.0, True, id="CoreDNS asked elsewhere"),
        pytest.param(60.0, 60.0, True, id="it came directly after the last look"),
        pytest.param(60.2, 60.0, True, id="the clocks were read one after the other"),
        pytest.param(3600.0, 60.0, False, id="the clock was set forward"),
        pytest.param(-3600.0, 60.0, False, id="the clock was set back"),
        pytest.param(math.nan, 60.0, False, id="no number"),
        pytest.param(math.inf, 60.0, False, id="no time at all"),
    ],
)
def test_a_query_is_stale_when_its_client_asked_elsewhere(age: float, gap: float, stale: bool) -> None:
    assert is_stale(age, gap=gap) is stale


@given(st.floats(), st.floats(max_value=1.5))
def test_without_a_hang_no_query_is_stale(age: float, gap: float) -> None:
    assert not is_stale(age, gap=gap)


@given(st.floats(min_value=0.0, max_value=1e6), st.floats(min_value=0.0, max_value=1e6))
def test_of_two_queries_in_one_queue_the_younger_is_not_stale_alone(age: float, earlier: float) -> None:
    gap = age + earlier
    assert is_stale(gap, gap=gap) or not is_stale(age, gap=gap)
    assert is_stale(age, gap=gap) == (age > STALE)
