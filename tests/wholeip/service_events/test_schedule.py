"""The schedule: what is sent when, and how much of it by all agents of a cluster together."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.events.event import EVERY
from wholeip.mappings.plan import Part, Plan
from wholeip.mappings.reports import Reason, Report
from wholeip.service_events.schedule import Schedule
from wholeip.service_events.turns import FIRST, REPEAT

HOUR = 3600.0
VM = "tenant/vm"


def schedule(node: str = "n1", *nodes: str) -> Schedule:
    return Schedule(node, lambda: {node, *nodes}, lambda: 0.0)


def plan_of(*details: str, reason: Reason = Reason.NO_ENDPOINT, uid: str = "1", service: str = VM) -> Plan:
    return Plan({service: Part(reports=tuple(sorted(Report(service, reason, one) for one in details)), uid=uid)})


def send(one: Schedule, now: float) -> str | None:
    """The note of the Event that is due, which is sent."""
    event = one.next(now)
    if event is None:
        return None
    one.sent(event, now)
    return event.note


def test_a_report_that_lasts_is_sent_and_sent_again() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    assert one.due == FIRST
    assert send(one, FIRST - 1) is None
    assert send(one, FIRST) == "no pod"
    assert one.due == FIRST + REPEAT
    assert send(one, one.due - 1) is None
    assert send(one, one.due) == "no pod"


def test_one_that_ends_before_its_turn_is_never_sent() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    one.note([VM], plan_of(), FIRST - 1)
    assert (one.due, len(one)) == (inf, 0)


@pytest.mark.parametrize("services", [[VM], None], ids=["touched", "all"])
def test_a_deleted_service_has_no_events_any_more(services: list[str] | None) -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    one.note(services, Plan(), 1.0)
    assert len(one) == 0


def test_the_same_reports_again_change_nothing() -> None:
    one = schedule()
    for now in range(10):
        one.note(None if now % 2 else [VM], plan_of("no pod"), float(now))
    assert one.due == FIRST


def test_a_change_of_another_service_leaves_it_alone() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    one.note(["tenant/other"], Plan(), 1.0)
    assert one.due == FIRST


def test_a_service_that_is_created_again_has_its_own_event_at_once() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    assert send(one, FIRST) == "no pod"
    one.note([VM], plan_of("no pod", uid="2"), FIRST + 1)
    assert one.due == 2 * FIRST + 1
    event = one.next(one.due)
    assert event is not None
    assert event.about.uid == "2"


def test_a_new_detail_is_sent_after_a_while_and_the_old_one_no_longer() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    assert send(one, FIRST) == "no pod"
    one.note([VM], plan_of("one pod leaves"), FIRST + 1)
    assert one.due == FIRST + EVERY
    assert send(one, one.due) == "one pod leaves"
    assert one.due == FIRST + EVERY + REPEAT


def test_details_that_keep_changing_do_not_put_it_off() -> None:
    one = schedule()
    for now in range(int(FIRST) + 1):
        one.note([VM], plan_of(f"{now} pods"), float(now))
    assert send(one, FIRST) == f"{FIRST:.0f} pods"


def test_a_report_that_changed_while_it_was_sent_is_sent_too() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    event = one.next(FIRST)
    assert event is not None
    one.note([VM], plan_of("other"), FIRST)
    one.sent(event, FIRST + 1)
    assert one.due == FIRST + 1 + EVERY
    assert send(one, one.due) == "other"


def test_a_report_that_ended_while_it_was_sent_is_forgotten() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    event = one.next(FIRST)
    assert event is not None
    one.note([VM], plan_of(), FIRST)
    one.sent(event, FIRST + 1)
    assert one.due == inf


def test_one_that_begins_again_after_it_ended_while_it_was_sent_waits_like_any_other() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    event = one.next(FIRST)
    assert event is not None
    one.note([VM], plan_of(), FIRST)
    one.sent(event, FIRST + 1)
    one.note([VM], plan_of("no pod"), FIRST + 2)
    assert one.due == FIRST + 1 + EVERY


def test_one_that_failed_stays_due_behind_the_others() -> None:
    one = schedule()
    one.note(None, plan_of("no pod"), 0.0)
    both = Plan({**plan_of("no pod").parts, **plan_of("bad", service="a/b", reason=Reason.BAD_PORT).parts})
    one.note(["a/b"], both, 5.0)
    failed = one.next(HOUR)
    assert failed is not None
    one.failed(failed, HOUR)
    assert (send(one, HOUR), send(one, HOUR)) == ("bad", "no pod")


def test_one_that_ended_or_changed_while_it_failed_is_left_as_it_is() -> None:
    one = schedule()
    one.note([VM], plan_of("no pod"), 0.0)
    failed = one.next(FIRST)
    assert failed is not None
    one.note([VM], plan_of("other"), FIRST)
    due = one.due
    one.failed(failed, HOUR)
    assert one.due == due
    one.note([VM], Plan(), FIRST)
    one.failed(failed, HOUR)
    assert len(one) == 0


def test_events_stay_due_until_they_are_sent_the_longest_waiting_first() -> None:
    one = schedule()
    one.note(None, plan_of("no pod"), 0.0)
    both = Plan({**plan_of("no pod").parts, **plan_of("bad", service="a/b", reason=Reason.BAD_PORT).parts})
    one.note(["a/b"], both, 5.0)
    assert one.next(HOUR) == one.next(HOUR)
    assert (send(one, HOUR), send(one, HOUR), send(one, HOUR)) == ("no pod", "bad", None)


_CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["a/x", "a/y"]),
        st.sampled_from(["1", "2"]),
        st.sets(st.sampled_from(["one", "two"])),
        st.sampled_from([0.0, 1.0, 14.0, 30.0, 301.0]),
    ),
    max_size=40,
)


@given(_CHANGES)
def test_however_reports_change_a_service_and_reason_have_one_request_in_some_minutes(
    changes: list[tuple[str, str, set[str], float]],
) -> None:
    """And at the end the schedule has the present reports, and nothing else after a while."""
    one, now, parts = schedule(), 0.0, dict[str, Part]()
    requests: dict[tuple[str, str], list[float]] = {}
    for service, uid, details, wait in changes:
        parts = {**parts, **plan_of(*details, uid=uid, service=service).parts}
        one.note([service], Plan(parts), now)
        now += wait
        while (event := one.next(now)) is not None:
            assert parts[f"{event.about.namespace}/{event.about.name}"].uid == event.about.uid
            requests.setdefault((event.about.name, event.about.uid), []).append(now)
            one.sent(event, now)
    for times in requests.values():
        assert all(later - earlier >= EVERY for earlier, later in pairwise(times))
    present = sum(bool(part.reports) for part in parts.values())
    one.note(None, Plan(parts), now)
    assert (one.due < inf) == bool(present)
    one.note(None, Plan(), now + EVERY)
    assert len(one) == 0


def requests_for_one_report(agents: list[str], nodes: frozenset[str], *, hours: float) -> list[float]:
    """When the agents send a request for one report that lasts."""
    schedules = [Schedule(one, lambda: nodes, lambda: 0.0) for one in agents]
    for one in schedules:
        one.note(None, plan_of("no pod"), 0.0)
    waiting = [(one.due, place) for place, one in enumerate(schedules)]
    heapq.heapify(waiting)
    times = []
    while waiting[0][0] < hours * HOUR:
        now, place = heapq.heappop(waiting)
        assert send(schedules[place], now) == "no pod"
        times.append(now)
        heapq.heappush(waiting, (schedules[place].due, place))
    return times


def most_in_an_hour(times: list[float]) -> int:
    return max(bisect_left(times, start + HOUR) - place for place, start in enumerate(times))


@pytest.mark.parametrize("count", [1, 2, 10, 1000])
def test_all_agents_of_a_cluster_send_few_requests_for_a_report(count: int) -> None:
    """Twenty-one in an hour at most, and the first one soon; the draws are those of the most requests."""
    nodes = frozenset(f"node-{number}" for number in range(count))
    times = requests_for_one_report(sorted(nodes), nodes, hours=48)
    assert times[0] == FIRST
    assert most_in_an_hour(times) <= 21
    assert sum(time >= 47 * HOUR for time in times) <= 12
    # The API server deletes an Event after an hour.
    assert all(later - earlier <= REPEAT for earlier, later in pairwise(times))


def test_where_few_nodes_have_an_agent_the_event_comes_later_and_is_kept() -> None:
    nodes = frozenset(f"node-{number:02}" for number in range(12))
    times = requests_for_one_report(["node-03", "node-04", "node-05"], nodes, hours=48)
    assert FIRST < times[0] <= HOUR / 4
    assert most_in_an_hour(times) <= 21


def test_nodes_that_come_and_go_change_the_turns_and_nothing_else() -> None:
    nodes = {"n1", "n2", "n3"}
    one = Schedule("n1", lambda: nodes, lambda: 0.0)
    one.note([VM], plan_of("no pod"), 0.0)
    nodes -= {"n1", "n2"}
    assert send(one, one.due) == "no pod"
    assert one.due < inf
