"""What a watcher does next: tables of single events, and laws over any history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.install.watch.state_machine import (
    FOLLOW_GAP,
    GAP,
    HEARTBEAT,
    HELD_GAP,
    HELD_HEARTBEAT,
    JITTER,
    Action,
    Cause,
    Conflicted,
    Drifted,
    Event,
    InPlace,
    ObjectChanged,
    PlanRefused,
    ReadFailed,
    Standing,
    Tick,
    WatchState,
    WriteFailed,
    Written,
    watch_step,
)
from sidecar.values.write_backoff import FREE, LONGEST, QUIET, Backoff

NOW = 1000.0
STOOD = WatchState(Standing.INSTALLED, look_at=NOW + 100, looked_at=NOW - 20, wanted="a", backoff=Backoff(0, NOW - 500))
LOOKING = replace(STOOD, running=Action.LOOK)
WRITING = replace(STOOD, running=Action.WRITE, standing=Standing.REPAIRING, pending="a", cause=Cause.UNDONE)
FOUGHT = replace(STOOD, running=Action.LOOK, backoff=Backoff(FREE, NOW - 1))

STEPS = [
    pytest.param(WatchState(), Tick(), Action.LOOK, Standing.STARTING, id="the first thing is a look"),
    pytest.param(STOOD, Tick(), None, Standing.INSTALLED, id="nothing is due"),
    pytest.param(replace(STOOD, look_at=NOW), Tick(), Action.LOOK, Standing.INSTALLED, id="the heartbeat"),
    pytest.param(LOOKING, Tick(), None, Standing.INSTALLED, id="one thing at a time"),
    pytest.param(STOOD, ObjectChanged(), None, Standing.INSTALLED, id="a change waits for its look"),
    pytest.param(LOOKING, InPlace("a"), None, Standing.INSTALLED, id="all as it should be"),
    pytest.param(LOOKING, Drifted("a"), Action.WRITE, Standing.REPAIRING, id="undone"),
    pytest.param(LOOKING, Drifted("b"), Action.WRITE, Standing.REPAIRING, id="another address"),
    pytest.param(FOUGHT, Drifted("a"), None, Standing.UNDONE, id="undone once too often"),
    pytest.param(LOOKING, PlanRefused("why"), None, Standing.REFUSED, id="refused"),
    pytest.param(LOOKING, ReadFailed("why"), None, Standing.UNKNOWN, id="not to be seen"),
    pytest.param(WRITING, Written(), None, Standing.REPAIRING, id="written, and still to be read back"),
    pytest.param(WRITING, Conflicted(), None, Standing.REPAIRING, id="somebody was faster"),
    pytest.param(WRITING, WriteFailed("why", refused=True), None, Standing.REFUSED, id="not taken"),
    pytest.param(WRITING, WriteFailed("why", refused=False), None, Standing.UNKNOWN, id="perhaps written"),
]


@pytest.mark.parametrize(("state", "event", "action", "standing"), STEPS)
def test_each_event_leads_to_one_thing(
    state: WatchState, event: Event, action: Action | None, standing: Standing
) -> None:
    after, then = watch_step(state, event, NOW, 0.5)
    assert (then, after.standing) == (action, standing)
    assert after.running == (action or (state.running if isinstance(event, Tick | ObjectChanged) else None))


def test_a_change_is_looked_at_within_a_jitter_and_two_at_once_are_one_look() -> None:
    after, _ = watch_step(STOOD, ObjectChanged(), NOW, 0.9)
    assert NOW < after.look_at <= NOW + JITTER
    again, _ = watch_step(after, ObjectChanged(), NOW + 0.1, 0.99)
    assert again.look_at == after.look_at
    soon, _ = watch_step(replace(STOOD, looked_at=NOW), ObjectChanged(), NOW, 0.0)
    assert soon.look_at == NOW + GAP


@pytest.mark.parametrize(
    "event", [InPlace("a"), PlanRefused("x"), ReadFailed("x"), Written(), Conflicted(), WriteFailed("x", True)]
)
def test_what_changed_meanwhile_is_looked_at_afterwards(event: Event) -> None:
    running = Action.WRITE if isinstance(event, Written | Conflicted | WriteFailed) else Action.LOOK
    touched, _ = watch_step(replace(LOOKING, running=running), ObjectChanged(), NOW, 0.5)
    after, action = watch_step(touched, event, NOW, 0.5)
    assert (action, after.changed) == (None, False)
    assert after.look_at <= NOW + HELD_GAP


def test_what_is_written_is_read_back_at_once_and_counted() -> None:
    after, _ = watch_step(WRITING, Written(), NOW, 0.5)
    assert (after.look_at, after.repairs, after.wanted) == (NOW, 1, "a")
    first, _ = watch_step(replace(WRITING, cause=Cause.FIRST), Written(), NOW, 0.5)
    assert first.repairs == 0


def test_an_undoing_is_told_from_another_wish() -> None:
    undone, _ = watch_step(LOOKING, Drifted("a"), NOW, 0.5)
    moved, _ = watch_step(LOOKING, Drifted("b"), NOW, 0.5)
    assert (undone.cause, undone.undone, moved.cause, moved.undone) == (Cause.UNDONE, 1, Cause.MOVED, 0)


def test_a_write_that_failed_is_not_tried_again_at_each_change() -> None:
    failed, _ = watch_step(WRITING, WriteFailed("forbidden", refused=False), NOW, 0.5)
    looking = replace(failed, running=Action.LOOK)
    after, action = watch_step(looking, Drifted("a"), NOW + 1, 0.5)
    assert (action, after.standing, after.why) == (None, Standing.UNKNOWN, "forbidden")
    assert after.look_at == failed.hold_until
    later, action = watch_step(looking, Drifted("a"), failed.hold_until, 0.5)
    assert (action, later.why) == (Action.WRITE, "")


@pytest.mark.parametrize("event", [PlanRefused("x"), ReadFailed("x"), Conflicted(), WriteFailed("x", refused=True)])
def test_setbacks_in_a_row_are_answered_more_and_more_slowly(event: Event) -> None:
    state, waits = WatchState(running=Action.LOOK), []
    for _ in range(40):
        state, _ = watch_step(state, event, NOW, 0.0)
        waits.append(state.look_at - NOW)
        state = replace(state, running=Action.LOOK)
    assert waits == sorted(waits)
    assert waits[0] < waits[-1] <= LONGEST
    whole, _ = watch_step(state, InPlace("a"), NOW, 0.0)
    assert whole.failures == 0


HELD = replace(FOUGHT, backoff=Backoff(FREE + 9), hold_until=NOW + 200, uid="first")


@pytest.mark.parametrize(
    ("state", "uid", "action"),
    [
        pytest.param(HELD, "second", Action.WRITE, id="another object"),
        pytest.param(HELD, "first", None, id="the same object"),
        pytest.param(HELD, "", None, id="no object"),
        pytest.param(replace(HELD, uid=""), "second", None, id="the first object that is seen"),
        pytest.param(replace(HELD, renewed_at=NOW - QUIET + 1), "second", None, id="another object again, too soon"),
        pytest.param(replace(HELD, renewed_at=NOW - QUIET), "second", Action.WRITE, id="another object, later"),
    ],
)
def test_another_object_of_the_name_ends_the_wait_now_and_then(
    state: WatchState, uid: str, action: Action | None
) -> None:
    after, then = watch_step(state, Drifted("a", uid), NOW, 0.5)
    assert (then, after.uid) == (action, uid or state.uid)
    if action is None:
        assert after.hold_until == state.hold_until
        assert after.look_at == NOW + HELD_HEARTBEAT


@given(st.lists(st.floats(0, 20), min_size=30, max_size=120), st.floats(0, 1, exclude_max=True))
def test_a_writer_that_creates_the_object_again_each_time_is_not_fought(stands: list[float], draw: float) -> None:
    state, now, writes, uid = WatchState(), 0.0, [], 0
    for seconds in stands:
        now = max(now + seconds, state.look_at if state.look_at > -inf else 0.0)
        state, action = watch_step(state, Tick(), now, draw)
        while action is not None:
            uid += 1
            event = Written() if action is Action.WRITE else Drifted("a", str(uid))
            writes += [now] if action is Action.WRITE else []
            state, action = watch_step(state, event, now, draw)
    # Twice the writes of one backoff: one ends in the minute, one begins.
    for first, later in zip(writes, writes[2 * (FREE + 5) :], strict=False):
        assert later - first >= QUIET - 1


Answer = Callable[[float], Event]

looks = st.sampled_from([InPlace("a"), Drifted("a"), Drifted("b"), PlanRefused("x"), ReadFailed("x")])
writes = st.sampled_from([Written(), Conflicted(), WriteFailed("x", refused=True), WriteFailed("x", refused=False)])
histories = st.lists(
    st.tuples(looks, writes, st.booleans(), st.floats(0, 200), st.floats(0, 1, exclude_max=True)), max_size=80
)


@given(histories)
def test_never_two_writes_without_a_look_in_between_and_always_a_next_look(
    history: list[tuple[Event, Event, bool, float, float]],
) -> None:
    state, now, done = WatchState(), 0.0, []
    for looked, wrote, touched, seconds, draw in history:
        now += seconds
        if touched:
            state, action = watch_step(state, ObjectChanged(), now, draw)
            assert action is None
        state, action = watch_step(state, Tick(), now, draw)
        while action is not None:
            done.append((action, now))
            state, action = watch_step(state, looked if action is Action.LOOK else wrote, now, draw)
        assert state.running is None
        assert now - 1 < state.look_at <= now + max(HEARTBEAT, LONGEST * 1.2)
    for (before, at), (after, then) in pairwise(done):
        assert after is Action.LOOK or (before is Action.LOOK and at == then)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 300)), max_size=60), st.floats(0, 1, exclude_max=True))
def test_a_quiet_cluster_is_never_written_to(turns: list[tuple[bool, float]], draw: float) -> None:
    state, now = WatchState(), 0.0
    for touched, seconds in turns:
        now += seconds
        state, _ = watch_step(state, ObjectChanged(), now, draw) if touched else (state, None)
        state, action = watch_step(state, Tick(), now, draw)
        if action is not None:
            state, action = watch_step(state, InPlace("a"), now, draw)
        assert action is None
    assert (state.repairs, state.undone) == (0, 0)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=80), st.floats(0, 1, exclude_max=True))
def test_who_undoes_everything_is_not_fought(stands: list[float], draw: float) -> None:
    """Each look finds it gone soon after the last write: a handful of writes, then one in some minutes."""
    state, now, writes = WatchState(), 0.0, []
    for seconds in stands:
        now = max(now + seconds, state.look_at if state.look_at > -inf else 0.0)
        state, action = watch_step(state, Tick(), now, draw)
        while action is not None:
            if action is Action.WRITE:
                writes.append(now)
                state, action = watch_step(state, Written(), now, draw)
            else:
                state, action = watch_step(state, Drifted("a"), now, draw)
    for first, later in zip(writes, writes[FREE + 8 :], strict=False):
        assert later - first >= LONGEST


def test_zones_that_are_added_are_written_at_once_and_then_some_seconds_apart_and_never_count_as_undone() -> None:
    """Each write reloads CoreDNS; and a stanza that grows often is undone by nobody."""
    now, state, writes = NOW, LOOKING, []
    for number in range(60):
        looking = replace(state, running=Action.LOOK)
        state, action = watch_step(looking, Drifted(f"{number}", follows=True), now, 0.5)
        if action is Action.WRITE:
            writes.append(now)
            state, _ = watch_step(state, Written(), now, 0.5)
            state, _ = watch_step(replace(state, running=Action.LOOK), InPlace(f"{number}"), now, 0.5)
        else:
            assert state.look_at == writes[-1] + FOLLOW_GAP
        assert state.standing is not Standing.UNDONE
        now += 1
    assert writes[0] == NOW
    assert [after - before for before, after in pairwise(writes)] == [FOLLOW_GAP] * 11
    assert (state.undone, state.held) == (0, 0)
