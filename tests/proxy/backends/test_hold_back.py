"""When a new endpoint of a Service gets connections."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.hold_back import HOLD, Choice, Seen, choose, choose_all, note_seen
from sidecar.kubernetes.endpoint_choice import Usable
from sidecar.values.endpoints import Endpoint

A, B, C, D = (Endpoint(f"192.0.2.{number}", 8443) for number in range(1, 5))
NONE: frozenset[Endpoint] = frozenset()
Step = tuple[float, set[Endpoint], set[Endpoint]]
"""The time, the ready endpoints and the terminating ones."""


def play(*steps: Step) -> Choice:
    """The choice after the last step."""
    seen: Seen = {}
    choice = Choice(())
    for now, ready, leaving in steps:
        usable = Usable(ready, leaving)
        seen = note_seen(seen, usable, now=now)
        choice = choose(usable, seen, now=now)
    return choice


@pytest.mark.parametrize(
    ("steps", "used", "held", "until"),
    [
        pytest.param([(0, set(), set())], (), (), inf, id="nothing"),
        pytest.param([(0, {A, B}, set())], (A, B), (), inf, id="the first list is used at once"),
        pytest.param([(0, set(), set()), (9, {A, B}, set())], (A, B), (), inf, id="the first endpoints too"),
        pytest.param([(0, {A}, set()), (9, {A, B}, set())], (A,), (B,), 9 + HOLD, id="a new one waits"),
        pytest.param([(0, {A}, set()), (9, {A, B}, set()), (9 + HOLD, {A, B}, set())], (A, B), (), inf, id="not long"),
        pytest.param(
            [(0, {A}, set()), (9, {A, B}, set()), (8.9 + HOLD, {A, B}, set())], (A,), (B,), 9 + HOLD, id="yet"
        ),
        pytest.param([(0, {A}, set()), (9, {B}, set())], (B,), (), inf, id="a new one alone does not wait"),
        pytest.param([(0, {A}, set()), (9, {B, C}, set())], (B, C), (), inf, id="two new ones alone do not wait"),
        pytest.param([(0, {A}, set()), (9, {A, B}, set()), (10, {B}, set())], (B,), (), inf, id="left alone"),
        pytest.param(
            [(0, {A}, set()), (9, {A, B}, set()), (10, {A, B, C}, set()), (11, {B, C}, set())],
            (B,),
            (C,),
            10 + HOLD,
            id="of two that wait, the one that was known before is used",
        ),
        pytest.param(
            [(0, {A}, set()), (9, {A, B}, set()), (10, {B}, set()), (11, {A, B}, set())],
            (B,),
            (A,),
            11 + HOLD,
            id="one that comes back is new, and does not displace the one in use",
        ),
        pytest.param(
            [(0, {A, B}, set()), (9, {B}, set()), (10, {A, B}, set())],
            (B,),
            (A,),
            10 + HOLD,
            id="not ready for a while",
        ),
        pytest.param([(0, set(), {A})], (A,), (), inf, id="only a terminating one"),
        pytest.param([(0, {A}, set()), (9, {B}, {A})], (A,), (B,), 9 + HOLD, id="the successor of a single replica"),
        pytest.param([(0, {A}, set()), (9, {B}, {A}), (9 + HOLD, {B}, {A})], (B,), (), inf, id="takes over"),
        pytest.param(
            [(0, {A}, set()), (9, {B}, {A}), (10, {B}, set())], (B,), (), inf, id="earlier without the old one"
        ),
        pytest.param(
            [(0, {A, B}, set()), (9, {B, C}, {A})], (B,), (C,), 9 + HOLD, id="no terminating one beside a ready"
        ),
        pytest.param([(0, {A}, {B})], (A,), (), inf, id="a terminating one from the start"),
    ],
)
def test_an_endpoint_gets_connections_after_its_hold_or_when_it_is_needed(
    steps: list[Step], used: tuple[Endpoint, ...], held: tuple[Endpoint, ...], until: float
) -> None:
    assert play(*steps) == Choice(used, held, until)


def test_without_hold_back_every_ready_endpoint_is_used() -> None:
    assert choose_all(Usable({B, A}, {C})) == Choice((A, B))
    assert choose_all(Usable(NONE, {C})) == Choice((C,))


ENDPOINTS = st.sets(st.sampled_from([A, B, C, D]))
STEPS = st.lists(st.tuples(st.floats(0, 2), ENDPOINTS, ENDPOINTS), min_size=1, max_size=12)


def times(steps: list[Step]) -> list[Step]:
    """Steps whose first member is a duration, with times instead; no endpoint is both ready and terminating."""
    now, timed = 0.0, []
    for after, ready, leaving in steps:
        now += after
        timed.append((now, ready, leaving - ready))
    return timed


@given(STEPS)
def test_while_any_endpoint_is_usable_one_is_used(steps: list[Step]) -> None:
    timed = times(steps)
    choice = play(*timed)
    _, ready, leaving = timed[-1]
    assert bool(choice.used) is bool(ready | leaving)
    assert set(choice.used) <= ready | leaving
    assert not set(choice.used) & set(choice.held)
    if set(choice.used) & ready:
        assert set(choice.used) | set(choice.held) == ready
    assert (choice.until == inf) is (not choice.held)


@given(STEPS)
def test_an_endpoint_in_use_stays_in_use_while_it_is_ready(steps: list[Step]) -> None:
    timed = times(steps)
    before: set[Endpoint] = set()
    for count in range(1, len(timed) + 1):
        _, ready, _ = timed[count - 1]
        used = set(play(*timed[:count]).used)
        assert before & ready <= used
        before = used & ready


@given(STEPS, st.floats(HOLD, 100))
def test_when_nothing_changes_the_hold_ends(steps: list[Step], later: float) -> None:
    timed = times(steps)
    now, ready, leaving = timed[-1]
    choice = play(*timed, (now + later, ready, leaving))
    assert choice.held == ()
    assert choice.used == choose_all(Usable(ready, leaving)).used


@given(STEPS)
def test_at_the_end_of_a_hold_something_changes(steps: list[Step]) -> None:
    timed = times(steps)
    _, ready, leaving = timed[-1]
    choice = play(*timed)
    if choice.until < inf:
        assert len(play(*timed, (choice.until, ready, leaving)).held) < len(choice.held)


def test_what_is_not_usable_is_forgotten() -> None:
    seen: Mapping[Endpoint, float] = note_seen({A: 1.0, B: 2.0}, Usable({B}, {C}), now=9.0)
    assert seen == {B: 2.0, C: 9.0}
