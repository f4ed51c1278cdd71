"""How long to wait before writing again what another writer undid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.values.write_backoff import FIRST, FREE, LONGEST, QUIET, Backoff, lost, stood, wait_of


def losing(times: int, *, after: float = 1.0) -> Backoff:
    """It was written and undone so often, each time after so many seconds."""
    backoff, now = Backoff(), 0.0
    for _ in range(times):
        backoff = lost(stood(backoff, now), now + after)
        now += after
    return backoff


@pytest.mark.parametrize(
    ("losses", "seconds"),
    [
        pytest.param(0, 0, id="at first"),
        pytest.param(1, 0, id="an upgrade"),
        pytest.param(FREE, 0, id="the last that is free"),
        pytest.param(FREE + 1, FIRST, id="the first wait"),
        pytest.param(FREE + 2, 2 * FIRST, id="twice as long"),
        pytest.param(FREE + 50, LONGEST, id="no longer than that"),
        pytest.param(5000, LONGEST, id="beyond any float"),
    ],
)
def test_the_wait_doubles_after_some_free_repairs(losses: int, seconds: float) -> None:
    assert wait_of(losing(losses)) == seconds


def test_quiet_lets_it_be_forgotten() -> None:
    fought = losing(FREE + 3)
    assert wait_of(lost(stood(fought, 100), 100 + QUIET - 1)) > wait_of(fought)
    assert wait_of(lost(stood(fought, 100), 100 + QUIET)) == 0
    seen = stood(stood(fought, 100), 100 + QUIET)
    assert (wait_of(seen), seen.stands_since) == (0, 100)


def test_what_did_not_stand_is_not_lost_again() -> None:
    once = losing(1)
    assert lost(once, 50) == once


@given(st.lists(st.floats(0, 10 * QUIET), max_size=60))
def test_nobody_is_fought_faster_than_once_a_minute_for_long(stands: list[float]) -> None:
    """Whatever the other side does, an hour sees a write a minute at most, beside a few."""
    backoff, now, writes = Backoff(), 0.0, []
    for seconds in stands:
        writes.append(now)
        backoff = lost(stood(backoff, now), now + seconds)
        now += seconds + wait_of(backoff)
    for first in writes:
        within = [one for one in writes if first <= one < first + QUIET]
        assert len(within) <= FREE + 5
