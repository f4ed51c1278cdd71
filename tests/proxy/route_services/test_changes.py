"""The changes from the open ports to the wanted ones."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.route_services.changes import (
    FIRST_RETRY,
    LAST_RETRY,
    Action,
    Failed,
    Plan,
    RouteChange,
    after_failure,
    plan_changes,
)
from proxy.routes import Route
from tests.proxy.route_services.made import route

A, B, C = (route(port) for port in (1, 2, 3))
A2 = route(1, "other")


def opened(*routes: Route) -> dict[int, Route]:
    return {one.listen.port: one for one in routes}


def failed(retry_at: float) -> Failed:
    return Failed("the address is in use", 1, retry_at)


def short(plan: Plan) -> tuple[list[str], list[int], float]:
    changes = [f"{change.action.value} {change.route.listen.port}" for change in plan.changes]
    return changes, [one.listen.port for one in plan.excess], plan.due


@pytest.mark.parametrize(
    ("before", "wanted", "failures", "changes", "excess", "due"),
    [
        pytest.param([], [], {}, [], [], inf, id="nothing"),
        pytest.param([], [A, B], {}, ["open 1", "open 2"], [], inf, id="new"),
        pytest.param([A, B], [A, B], {}, [], [], inf, id="the same"),
        pytest.param([A], [A2], {}, ["change 1"], [], inf, id="another backend at the same port"),
        pytest.param([A], [B], {}, ["close 1", "open 2"], [], inf, id="what closes makes room first"),
        pytest.param([A], [A2, B], {}, ["change 1", "open 2"], [], inf, id="a change beside a new one"),
        pytest.param([], [A, B], {1: failed(9)}, ["open 2"], [], 9, id="one that is not due yet"),
        pytest.param([], [A, B], {1: failed(5)}, ["open 1", "open 2"], [], inf, id="one that is due"),
        pytest.param([A], [A2], {1: failed(9)}, ["change 1"], [], inf, id="an open one is not tried again"),
        pytest.param([], [A, B], {1: failed(9), 2: failed(7)}, [], [], 7, id="the next one"),
        pytest.param([A], [A, B, C], {}, ["open 2"], [3], inf, id="no room for all"),
        pytest.param([B, C], [A, B, C], {}, [], [1], inf, id="an open one stays"),
        pytest.param([A, B], [B, C], {}, ["close 1", "open 3"], [], inf, id="room by one that closes"),
        pytest.param([A], [A, B, C], {3: failed(1)}, ["open 2"], [3], inf, id="a failed one without room"),
    ],
)
def test_a_plan_has_the_changes_that_are_due(
    before: list[Route],
    wanted: list[Route],
    failures: dict[int, Failed],
    changes: list[str],
    excess: list[int],
    due: float,
) -> None:
    assert short(plan_changes(opened(*before), wanted, failures, most=2, now=5)) == (changes, excess, due)


def test_without_room_nothing_opens() -> None:
    assert short(plan_changes({}, [A], {}, most=0, now=5)) == ([], [1], inf)


def test_a_port_is_tried_again_after_longer_and_longer() -> None:
    one, waits, now = None, [], 100.0
    for _ in range(2_000):
        one = after_failure(one, reason="x", now=now)
        waits.append(one.retry_at - now)
        now = one.retry_at
    assert waits[0] == FIRST_RETRY
    assert waits[:4] == [FIRST_RETRY * 2**count for count in range(4)]
    assert waits[-1] == LAST_RETRY == max(waits)
    assert one is not None
    assert one.attempts == 2_000


ROUTES = st.dictionaries(st.integers(1, 6), st.sampled_from(["shop", "other"]), max_size=6).map(
    lambda found: [route(port, backend) for port, backend in found.items()]
)
FAILURES = st.dictionaries(st.integers(1, 6), st.floats(0, 10).map(failed), max_size=6)


def apply(before: dict[int, Route], plan: Plan) -> dict[int, Route]:
    after = dict(before)
    for change in plan.changes:
        port = change.route.listen.port
        if change.action is Action.CLOSE:
            assert after.pop(port) == change.route
        else:
            assert (port in after) is (change.action is Action.CHANGE)
            after[port] = change.route
    return after


@given(ROUTES, ROUTES, FAILURES, st.integers(0, 7), st.floats(0, 10))
def test_after_its_changes_exactly_the_wanted_ports_are_open_but_for_the_named_ones(
    before: list[Route], wanted: list[Route], failures: dict[int, Failed], most: int, now: float
) -> None:
    plan = plan_changes(opened(*before), wanted, failures, most=most, now=now)
    after = apply(opened(*before), plan)
    waiting = {port for port, one in failures.items() if one.retry_at > now and port not in opened(*before)} | {
        one.listen.port for one in plan.excess
    }
    assert after == {port: one for port, one in opened(*wanted).items() if port not in waiting}
    again = plan_changes(after, wanted, failures, most=most, now=now)
    assert again.changes == ()
    assert again.due == plan.due > now


@given(ROUTES, ROUTES, st.integers(0, 7))
def test_a_wanted_port_that_is_open_is_never_closed(before: list[Route], wanted: list[Route], most: int) -> None:
    plan = plan_changes(opened(*before), wanted, {}, most=most, now=0)
    closed = {change.route.listen.port for change in plan.changes if change.action is Action.CLOSE}
    assert not closed & opened(*wanted).keys()
    assert not {one.listen.port for one in plan.excess} & opened(*before).keys()


def test_a_change_names_the_route_that_holds_from_now_on() -> None:
    assert plan_changes(opened(A), [A2], {}, most=9, now=0).changes == (RouteChange(Action.CHANGE, A2),)
