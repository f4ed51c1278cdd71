"""The log of rejections: each once, and of many the first."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Origin, Rejection
from dnsproxy.serve.rejection_log import LOOK, MINUTE, MOST, RejectionLog
from tests.kit.stepping import finish


class Clock:
    """A clock that a test moves, in seconds."""

    def __init__(self) -> None:
        self.time = 7.0

    def __call__(self) -> float:
        return self.time


def of_file(*numbers: int) -> list[Rejection]:
    return [Rejection(Origin("hosts file", f"/etc/names:{number}"), "no address") for number in numbers]


def of_namespace(namespace: str, count: int, *, deliberate: bool = False) -> list[Rejection]:
    return [Rejection(Origin("Ingress", f"i{n}", namespace), "no hostname", deliberate) for n in range(count)]


def logged(log: RejectionLog, rejections: Iterable[Rejection]) -> list[dict[str, Any]]:
    with capture_logs() as lines:
        finish(log.write(rejections))
    return [dict(line) for line in lines]


def test_each_is_logged_once_and_again_after_it_was_gone() -> None:
    log = RejectionLog(ClaimStore())
    (line,) = logged(log, of_file(3))
    assert line == {
        "event": "rejected",
        "log_level": "warning",
        "origin": "hosts file /etc/names:3",
        "reason": "no address",
    }
    assert logged(log, of_file(3)) == []
    assert len(logged(log, of_file(3, 4))) == 1
    assert logged(log, []) == []
    assert len(logged(log, of_file(3))) == 1


def test_of_sixty_thousand_bad_lines_twenty_are_logged_and_the_number_of_the_others() -> None:
    log = RejectionLog(ClaimStore())
    lines = logged(log, of_file(*range(60_000)))
    assert len(lines) == MOST + 1
    assert lines[-1] == {
        "event": "more are rejected",
        "log_level": "warning",
        "kind": "hosts file",
        "count": 60_000 - MOST,
    }
    assert logged(log, of_file(*range(60_000))) == []


def test_a_namespace_with_many_hides_no_other() -> None:
    lines = logged(RejectionLog(ClaimStore()), [*of_namespace("noisy", 500), *of_namespace("quiet", 1), *of_file(1)])
    origins = [line["origin"] for line in lines if "origin" in line]
    assert {"Ingress quiet/i0", "hosts file /etc/names:1"} <= set(origins)
    assert [line["namespace"] for line in lines if line["event"] == "more are rejected"] == ["noisy"]


def test_deliberate_ones_are_for_debugging_alone() -> None:
    lines = logged(RejectionLog(ClaimStore()), of_namespace("shop", 100, deliberate=True))
    assert {line["log_level"] for line in lines} <= {"debug"}


def test_objects_that_come_one_by_one_have_no_more_lines_than_those_that_come_at_once() -> None:
    clock = Clock()
    log = RejectionLog(ClaimStore(), now=clock)
    lines = []
    for number in range(1, 301):
        lines += logged(log, of_namespace("noisy", number))
        clock.time += 0.1
    assert [line["event"] for line in lines] == ["rejected"] * MOST + ["more are rejected"]
    assert lines[-1]["count"] == 1
    assert log.due == 7.0 + MINUTE
    clock.time = log.due
    (line,) = logged(log, of_namespace("noisy", 300))
    assert (line["event"], line["namespace"], line["count"]) == ("more are rejected", "noisy", 300 - MOST - 1)
    assert log.due == math.inf


def test_after_a_minute_the_next_ones_are_logged_again() -> None:
    clock = Clock()
    log = RejectionLog(ClaimStore(), now=clock)
    assert len(logged(log, of_namespace("noisy", 2 * MOST))) == MOST + 1
    clock.time += MINUTE
    assert len(logged(log, of_namespace("noisy", 2 * MOST + 1))) == 1


def test_nothing_is_due_while_nothing_is_untold() -> None:
    log = RejectionLog(ClaimStore(), now=Clock())
    logged(log, of_namespace("quiet", MOST))
    assert log.due == math.inf


# --- while the server runs -------------------------------------------------------------------------------------------


def reject(store: ClaimStore, count: int) -> None:
    for rejection in of_namespace("shop", count):
        store.replace("Ingress", f"shop/{rejection.origin.name}", [], [rejection])


async def test_what_one_object_has_is_logged_within_seconds_and_what_a_list_has_at_once(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    store = ClaimStore()
    log = RejectionLog(store, now=trio.current_time)
    nursery.start_soon(log.run)
    await wait_all_tasks_blocked()
    with capture_logs() as lines:
        reject(store, 1)
        await trio.sleep(LOOK + 0.1)
        assert len(lines) == 1
        reject(store, 2)
        log.wake()
        await wait_all_tasks_blocked()
        assert [line["origin"] for line in lines] == ["Ingress shop/i0", "Ingress shop/i1"]
        await trio.sleep(3 * LOOK)
        assert len(lines) == 2


async def test_the_number_of_the_others_is_logged_when_the_minute_is_over(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    store, clock = ClaimStore(), Clock()
    log = RejectionLog(store, now=clock)
    with capture_logs() as lines:
        reject(store, MOST + 1)
        await log.look()
        reject(store, MOST + 4)
        await log.look()
        nursery.start_soon(log.run)
        assert [line["count"] for line in lines if "count" in line] == [1]
        clock.time += MINUTE
        await trio.sleep(LOOK + 0.1)
        assert [line["count"] for line in lines if "count" in line] == [1, 3]


async def test_rejections_that_have_not_changed_are_not_read_again(autojump_clock: MockClock) -> None:
    class Counted(ClaimStore):
        reads = 0

        def rejections(self) -> Iterator[Rejection]:
            self.reads += 1
            return super().rejections()

    store = Counted()
    log = RejectionLog(store, now=trio.current_time)
    reject(store, 3)
    with capture_logs():
        for _ in range(5):
            await log.look()
    assert store.reads == 1
