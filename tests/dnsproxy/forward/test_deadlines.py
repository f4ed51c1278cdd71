"""The deadlines of an upstream: inside those of CoreDNS, and in an order that leaves time for each step."""

from __future__ import annotations

import pytest

from dnsproxy.forward.deadlines import GIVE_UP, IMPATIENT, PROBE_GIVE_UP, RETRY, STREAM_AFTER, TICK, patience


def test_the_deadlines_are_inside_those_of_coredns() -> None:
    """It waits two seconds for a reply and one for its health probe, and then treats this server as dead."""
    assert RETRY + TICK <= 0.7
    assert GIVE_UP + TICK <= 1.8
    assert PROBE_GIVE_UP + TICK <= 0.6


def test_a_client_that_retries_gets_another_upstream_before_its_next_retry() -> None:
    """Clients send again after half a second at the earliest, and some of them a second time after as long."""
    assert IMPATIENT <= 0.25


def test_the_steps_leave_time_for_each_other() -> None:
    assert IMPATIENT < PROBE_GIVE_UP < RETRY < STREAM_AFTER < 2 * RETRY < GIVE_UP


@pytest.mark.parametrize("ways", range(10))
def test_the_last_of_several_ways_has_time_to_answer(ways: int) -> None:
    """Each way starts when the one before it was silent for so long; few ways do not wait longer than many."""
    assert 0 < patience(ways) <= GIVE_UP / 4
    assert (ways + 1) * patience(ways) <= GIVE_UP + 1e-9
