"""The recorder: an Event reaches an API server that is away for a while, once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
import structlog
import trio
import trio.testing

from sidecar.kubernetes.events.event import EVERY, About, Reason, Reporter
from sidecar.kubernetes.events.recorder import EventRecorder
from tests.dnsproxy.install.run.test_applying import client_of
from tests.kit.manifest_api import respond

Clock = trio.testing.MockClock
HOURS = 50_000
REPORTER = Reporter("example.org/keeper", action="Keep", name_prefix="example-keeper")
REPAIRED = Reason("Repaired")
MOVED = Reason("Moved")
REASONS = (REPAIRED, MOVED, *(Reason(f"Other{number}") for number in range(5)))
ABOUT = About("ConfigMap", "kube-system", "coredns", "123")


@dataclass
class Server(httpx2.AsyncBaseTransport):
    """Keeps Events by name; `answer` decides what it does with each request, None for what it should do."""

    answer: Callable[[int], int | None] = lambda _: None
    loses: Callable[[int], bool] = lambda _: False
    """Whether it keeps the Event, and its answer is lost."""
    asked: int = 0
    made: dict[str, Any] = field(default_factory=dict)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        number, self.asked = self.asked, self.asked + 1
        status = self.answer(number)
        if status == 0:
            raise httpx2.ConnectError("away")
        if status is not None:
            return respond(status, json.dumps({"kind": "Status", "code": status, "message": "no"}).encode())
        body = json.loads(request.content)
        if body["metadata"]["name"] in self.made:
            return respond(409, b'{"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "exists"}')
        self.made[body["metadata"]["name"]] = body
        if self.loses(number):
            raise httpx2.ReadError("the connection was lost")
        return respond(201, b"{}")

    @property
    def reasons(self) -> list[str]:
        return [one["reason"] for one in self.made.values()]


@asynccontextmanager
async def recording(server: Server) -> AsyncIterator[EventRecorder]:
    # The deadline of each test (tests/conftest.py) is a minute of the mock clock.
    with trio.fail_after(HOURS) as scope:
        scope.shield = True
        async with client_of(server) as client, trio.open_nursery() as nursery:
            recorder = EventRecorder(client, REPORTER, logger="example")
            nursery.start_soon(recorder.run)
            yield recorder
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("status", [0, 401, 429, 500, 503, 504])
async def test_an_event_that_the_server_cannot_take_now_is_sent_again(status: int, autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the pauses
    server = Server(lambda number: status if number < 3 else None)
    async with recording(server) as recorder:
        recorder.record(ABOUT, REPAIRED, "a")
        recorder.record(ABOUT, MOVED, "b")
        # After 401 the credentials are read again in a thread, for which this clock does not wait.
        await trio.sleep(150)
        assert server.reasons == ["Repaired", "Moved"]


@pytest.mark.parametrize("status", [400, 403, 404, 422])
async def test_an_event_that_the_server_rejects_is_dropped_and_later_ones_are_not(
    status: int, autojump_clock: Clock
) -> None:
    del autojump_clock  # nobody waits for the pauses
    server = Server(lambda number: status if number == 0 else None)
    with structlog.testing.capture_logs() as logs:
        async with recording(server) as recorder:
            recorder.record(ABOUT, REPAIRED, "a")
            recorder.record(ABOUT, MOVED, "b")
            await trio.sleep(60)
    assert (server.asked, server.reasons) == (2, ["Moved"])
    assert [one["event"] for one in logs] == ["cannot make an Event"]


async def test_one_whose_answer_was_lost_is_not_created_twice(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the pauses
    server = Server(loses=lambda number: number == 0)
    async with recording(server) as recorder:
        recorder.record(ABOUT, REPAIRED, "a")
        await trio.sleep(60)
        assert (server.asked, server.reasons) == (2, ["Repaired"])


async def test_a_server_that_stays_away_costs_a_bounded_queue_and_one_line(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the pauses
    server = Server(lambda _: 0)
    with structlog.testing.capture_logs() as logs:
        async with recording(server) as recorder:
            for _ in range(10):
                for reason in REASONS:
                    recorder.record(ABOUT, reason, "a")
                await trio.sleep(EVERY)
            asked = server.asked
            await trio.sleep(3600)
            assert 100 < server.asked - asked <= 64 * 12
    assert len(logs) == 1


async def test_an_event_just_before_the_end_is_still_created(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the pauses
    server = Server()
    async with recording(server) as recorder:
        await trio.sleep(1)
        recorder.record(ABOUT, REPAIRED, "a")
    assert server.reasons == ["Repaired"]


async def test_the_end_does_not_wait_for_a_server_that_is_away(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the pauses
    server = Server(lambda _: 0)
    async with recording(server) as recorder:
        recorder.record(ABOUT, REPAIRED, "a")
        await trio.testing.wait_all_tasks_blocked()
        ended = trio.current_time()
    assert trio.current_time() - ended <= 1
