"""The deadlines of an upstream: inside those of CoreDNS, and in an order that leaves time for each step."""

from __future__ import annotations

import pytest

from dnsproxy.forward.deadlines import (
    GIVE_UP,
    HURRIED_RETRY,
    IMPATIENT,
    PROBE_GIVE_UP,
    RETRY,
    STEPS,
    STREAM_AFTER,
    TICK,
    Step,
    patience,
    steps_for,
    stream_patience,
)


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


@pytest.mark.parametrize("upstreams", range(4))
def test_few_upstreams_are_asked_at_the_usual_times(upstreams: int) -> None:
    assert steps_for(upstreams) == STEPS


@pytest.mark.parametrize("upstreams", [*range(2, 16), 100])
def test_each_upstream_is_asked_while_it_has_time_to_answer(upstreams: int) -> None:
    """CoreDNS takes up to 15."""
    steps = steps_for(upstreams)
    times = [seconds for seconds, _ in steps]
    assert times == sorted(times)
    assert [step for _, step in steps].count(Step.RETRY) >= upstreams - 1
    assert max(seconds for seconds, step in steps if step is Step.RETRY) + TICK <= GIVE_UP - 0.4
    assert [step for _, step in steps if step is not Step.RETRY] == [Step.STREAM, Step.GIVE_UP]
    assert steps[-1] == (GIVE_UP, Step.GIVE_UP)
    assert IMPATIENT < HURRIED_RETRY <= times[0]


@pytest.mark.parametrize("ways", range(1, 16))
def test_the_last_of_several_streams_has_time_to_answer(ways: int) -> None:
    assert STREAM_AFTER + (ways - 1) * stream_patience(ways) < GIVE_UP


@pytest.mark.parametrize("ways", range(10))
def test_the_last_of_several_ways_has_time_to_answer(ways: int) -> None:
    """Each way starts when the one before it was silent for so long; few ways do not wait longer than many."""
    assert 0 < patience(ways) <= GIVE_UP / 4
    assert (ways + 1) * patience(ways) <= GIVE_UP + 1e-9
