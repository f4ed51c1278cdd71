"""Which replica probes and writes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sidecar.kubernetes.leases.leading import (
    DURATION,
    GIVE_UP,
    RENEW,
    Leading,
    LeaseStep,
    SeenLease,
    after_look,
    after_write,
    leads,
    next_step,
)


def look(state: Leading, holder: str, version: str, now: float) -> Leading:
    return after_look(state, SeenLease(holder, version), identity="me", now=now)


def step(state: Leading, now: float) -> LeaseStep:
    return next_step(state, identity="me", now=now)


def test_without_a_lease_it_is_created() -> None:
    state = look(Leading(), "", "", 0)
    assert step(state, 0) is LeaseStep.CREATE
    assert not leads(state, identity="me", now=0)
    state = after_write(state, SeenLease("me", "1"), now=0)
    assert leads(state, identity="me", now=GIVE_UP - 1)
    assert not leads(state, identity="me", now=GIVE_UP)


def test_another_holder_is_left_alone_while_it_renews() -> None:
    state = Leading()
    for second in range(0, 60, 5):
        state = look(state, "you", str(second), second)
        assert step(state, second + 4) is LeaseStep.WAIT
    assert step(state, 55 + DURATION) is LeaseStep.TAKE


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    assert step(look(Leading(), "", "7", 0), 0) is LeaseStep.TAKE


def test_a_lease_of_an_earlier_process_shows_that_it_may_have_probed() -> None:
    assert look(Leading(), "", "7", 100).other_until == 100
    assert look(Leading(), "you", "7", 100).other_until == 100
    fresh = after_write(look(Leading(), "", "", 100), SeenLease("me", "1"), now=100)
    assert fresh.other_until == Leading().other_until
    assert look(fresh, "me", "2", 104).other_until == Leading().other_until


@pytest.mark.parametrize(
    ("version", "age", "until"),
    [
        pytest.param("", 300.0, -200.0, id="no replica has led for minutes"),
        pytest.param("", 2.0, 98.0, id="given back by the process before"),
        pytest.param("6", 2.0, 98.0, id="seen to change since the look before"),
        pytest.param("6", 300.0, 100 - RENEW, id="seen to change, by a clock that is behind"),
    ],
)
def test_the_age_of_a_lease_shows_how_long_ago_another_replica_may_have_probed(
    version: str, age: float, until: float
) -> None:
    before = look(Leading(), "you", version, 96)
    seen = SeenLease("", "7", age)
    assert after_look(before, seen, identity="me", now=100).other_until == until


def test_a_deleted_lease_ends_the_leading_until_it_is_written_again() -> None:
    state = after_write(Leading(), SeenLease("me", "1"), now=0)
    state = look(state, "", "", 1)
    assert not leads(state, identity="me", now=1)
    assert step(state, 1) is LeaseStep.CREATE


class Replicas(RuleBasedStateMachine):
    """Two replicas, one Lease with optimistic locking, lost requests, and clocks that advance alike."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.lease = SeenLease()
        self.version = 0
        self.states = {"a": Leading(), "b": Leading()}

    @rule(who=st.sampled_from("ab"), arrives=st.booleans(), delay=st.floats(0, 3))
    def turn(self, who: str, arrives: bool, delay: float) -> None:
        """Look, and write if that is the step; the answer comes later, or never."""
        state = after_look(self.states[who], self.lease, identity=who, now=self.now)
        self.states[who] = state
        if next_step(state, identity=who, now=self.now) is LeaseStep.WAIT:
            return
        sent = self.now
        self.version += 1
        self.lease = SeenLease(who, str(self.version))
        self.now += delay
        if arrives:
            self.states[who] = after_write(self.states[who], self.lease, now=sent)

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def delete(self) -> None:
        """Somebody deletes the Lease: the holder may be unaware of it for GIVE_UP seconds, so nobody does that."""
        if not any(leads(state, identity=who, now=self.now) for who, state in self.states.items()):
            self.lease = SeenLease()

    @invariant()
    def at_most_one_leads(self) -> None:
        assert sum(leads(state, identity=who, now=self.now) for who, state in self.states.items()) <= 1


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=300, stateful_step_count=30, deadline=None)


def test_a_replica_that_stops_is_followed_within_the_duration() -> None:
    mine = after_write(Leading(), SeenLease("you", "1"), now=0)
    assert step(replace(mine, since=0), DURATION - 0.1) is LeaseStep.WAIT
    assert step(replace(mine, since=0), DURATION) is LeaseStep.TAKE
