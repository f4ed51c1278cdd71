"""The writer: an Event of all agents is made once, and whatever the API server does, agents ask it rarely."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx2
import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.dnsproxy.install.run.test_applying import client_of
from tests.kit.manifest_api import respond
from wholeip.mappings.plan import Part, Plan
from wholeip.mappings.reports import Reason, Report
from wholeip.service_events.turns import FIRST, REPEAT
from wholeip.service_events.writer import BACKOFF_FIRST, BACKOFF_LIMIT, PACE, WITHOUT_RIGHT, EventWriter

HOURS = 400_000
RBAC = (
    'events.events.k8s.io is forbidden: User "system:serviceaccount:switchback-wholeip:wholeip" cannot create resource '
    '"events" in API group "events.k8s.io" in the namespace "tenant"'
)
ENDING = 'events.events.k8s.io "wholeip-0" is forbidden: unable to create new content in namespace tenant because it'
"""As a kube-apiserver words both."""

Fault = tuple[int, str] | None


@dataclass
class Server(httpx2.AsyncBaseTransport):
    """Keeps Events by name; `fault` replaces an answer, by the number of the request and its namespace."""

    fault: Callable[[int, str], Fault] = lambda _, __: None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of faults."""
    asked: list[float] = field(default_factory=list)
    made: dict[str, Any] = field(default_factory=dict)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        body = json.loads(request.content)
        assert (request.method, request.url.path) == (
            "POST",
            f"/apis/events.k8s.io/v1/namespaces/{body['metadata']['namespace']}/events",
        )
        self.asked.append(trio.current_time())
        fault = self.fault(len(self.asked) - 1, body["metadata"]["namespace"])
        if fault is not None and not fault[0]:
            raise httpx2.ConnectError("connection refused")
        if fault is not None:
            response = respond(fault[0], json.dumps({"kind": "Status", "code": fault[0], "message": fault[1]}).encode())
            response.headers.update(self.headers)
            return response
        if body["metadata"]["name"] in self.made:
            return respond(409, b'{"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "exists"}')
        self.made[body["metadata"]["name"]] = body
        return respond(201, b"{}")

    @property
    def services(self) -> list[str]:
        return [one["regarding"]["name"] for one in self.made.values()]


def plan_of(*services: str, text: str = "no pod is ready", uid: str = "1") -> Plan:
    parts = {one: Part(reports=(Report(one, Reason.NO_ENDPOINT, text),), uid=f"{one}-{uid}") for one in services}
    return Plan(parts)


@asynccontextmanager
async def writing(
    server: Server, node: str = "n1", nodes: Collection[str] = ("n1",), *, draw: float = 0.0
) -> AsyncIterator[EventWriter]:
    # The deadline of each test (tests/conftest.py) is a minute of the mock clock.
    with trio.fail_after(HOURS) as scope:
        scope.shield = True
        async with client_of(server) as client, trio.open_nursery() as nursery:
            writer = EventWriter(client, node, lambda: nodes, draw=lambda: draw)
            nursery.start_soon(writer.run)
            yield writer
            nursery.cancel_scope.cancel()


async def test_two_agents_make_one_event(autojump_clock: MockClock) -> None:
    server, nodes = Server(), {"n1", "n2"}
    async with writing(server, "n1", nodes) as first, writing(server, "n2", nodes) as second:
        for writer in (first, second):
            writer.note(None, plan_of("tenant/vm"))
        await trio.sleep(FIRST * 4 + 1)
        assert len(server.asked) == 2
        (body,) = server.made.values()
    assert (body["reason"], body["note"], body["type"]) == ("NoEndpoint", "no pod is ready", "Warning")
    assert body["reportingInstance"] in nodes


async def test_an_agent_that_starts_again_finds_its_event_without_a_word(autojump_clock: MockClock) -> None:
    server = Server()
    with capture_logs() as logs:
        for _ in range(3):
            async with writing(server) as writer:
                writer.note(None, plan_of("tenant/vm"))
                await trio.sleep(FIRST + 1)
    assert (len(server.asked), len(server.made), logs) == (3, 1, [])


async def test_an_event_that_has_expired_is_made_again_while_the_report_lasts(autojump_clock: MockClock) -> None:
    server = Server()
    async with writing(server) as writer:
        writer.note(None, plan_of("tenant/vm"))
        await trio.sleep(FIRST + 1)
        server.made.clear()
        await trio.sleep(REPEAT)
        assert server.services == ["vm"]
        writer.note(["tenant/vm"], Plan())
        await trio.sleep(10 * REPEAT)
        assert len(server.asked) == 2


async def test_a_service_that_is_created_again_gets_its_own_event(autojump_clock: MockClock) -> None:
    server = Server()
    async with writing(server) as writer:
        for uid in ("1", "2"):
            writer.note(["tenant/vm"], plan_of("tenant/vm", uid=uid))
            await trio.sleep(FIRST + 1)
    assert [one["regarding"]["uid"] for one in server.made.values()] == ["tenant/vm-1", "tenant/vm-2"]


async def test_a_thousand_reports_cost_thirty_requests_in_a_minute(autojump_clock: MockClock) -> None:
    server = Server()
    async with writing(server) as writer:
        writer.note(None, plan_of(*(f"tenant/vm{number}" for number in range(1000))))
        await trio.sleep(FIRST + 2100)
    assert len(server.made) == 1000, "those that wait come before those that are sent again"
    assert all(later - earlier >= PACE for earlier, later in pairwise(server.asked))


async def test_a_missing_right_is_logged_once_and_asked_for_once_in_an_hour(autojump_clock: MockClock) -> None:
    server = Server(lambda number, _: (403, RBAC) if number < 3 else None)
    with capture_logs() as logs:
        async with writing(server) as writer:
            writer.note(None, plan_of("tenant/a", "tenant/b", "tenant/c"))
            await trio.sleep(FIRST + 2 * WITHOUT_RIGHT + 1)
            assert len(server.asked) == 3
            await trio.sleep(WITHOUT_RIGHT + 2 * PACE)
            assert server.services == ["a", "b", "c"], "it was granted meanwhile"
    (log,) = logs
    assert (log["event"], log["right"]) == (
        "no Events: a right is missing",
        "create on events of events.k8s.io, in every namespace",
    )
    assert "cannot create" in log["cause"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param((403, ENDING), id="the namespace ends"),
        pytest.param((403, 'events "wholeip-0" is forbidden: exceeded quota: few'), id="a quota"),
        pytest.param((403, 'admission webhook "no.example.org" denied the request'), id="a webhook"),
        pytest.param((404, 'namespaces "tenant" not found'), id="the namespace is gone"),
        pytest.param((422, "Event is invalid"), id="invalid"),
        pytest.param((400, "bad"), id="bad"),
    ],
)
async def test_a_refused_event_costs_no_other_one(fault: Fault, autojump_clock: MockClock) -> None:
    server = Server(lambda _, namespace: fault if namespace == "tenant" else None)
    with capture_logs() as logs:
        async with writing(server) as writer:
            writer.note(None, plan_of("tenant/a", "tenant/b", "other/c"))
            await trio.sleep(FIRST + 4 * PACE)
            assert (len(server.asked), server.services) == (3, ["c"])
            await trio.sleep(REPEAT)
            assert len(server.asked) == 6
    assert [one["event"] for one in logs] == ["cannot make an Event"]


@pytest.mark.parametrize("status", [0, 429, 500, 503])
async def test_an_api_server_that_is_gone_is_asked_ever_more_rarely(status: int, autojump_clock: MockClock) -> None:
    away = True
    server = Server(lambda _, __: (status, "no") if away else None)
    with capture_logs() as logs:
        async with writing(server) as writer:
            writer.note(None, plan_of(*(f"tenant/vm{number}" for number in range(20))))
            await trio.sleep(3600)
            waits = [later - earlier for earlier, later in pairwise(server.asked)]
            assert waits[0] == BACKOFF_FIRST
            assert waits == sorted(waits)
            assert waits[-1] == BACKOFF_LIMIT
            away = False
            await trio.sleep(BACKOFF_LIMIT + 20 * PACE)
            assert len(server.made) == 20
    assert [one["event"] for one in logs] == ["cannot make an Event"]


async def test_an_event_at_which_the_server_fails_keeps_no_other_one_back(autojump_clock: MockClock) -> None:
    """An admission webhook of one namespace may be down, which is a 500."""
    down = True
    fault = (500, 'Internal error occurred: failed calling webhook "no.example.org"')
    server = Server(lambda _, namespace: fault if down and namespace == "tenant" else None)
    with capture_logs():
        async with writing(server) as writer:
            writer.note(None, plan_of("tenant/a", *(f"other/vm{number}" for number in range(5))))
            await trio.sleep(FIRST + BACKOFF_FIRST + 5 * PACE)
            assert server.services == [f"vm{number}" for number in range(5)]
            down = False
            await trio.sleep(4 * BACKOFF_FIRST)
            assert server.services[5:] == ["a"], "it is tried again"


async def test_a_busy_server_says_when_to_come_again(autojump_clock: MockClock) -> None:
    server = Server(lambda number, _: (429, "busy") if number == 0 else None, headers={"retry-after": "77"})
    async with writing(server) as writer:
        writer.note(None, plan_of("tenant/vm"))
        await trio.sleep(FIRST + 78)
    assert server.asked == [FIRST, FIRST + 77]


async def test_a_report_that_ends_while_the_server_is_gone_makes_no_event(autojump_clock: MockClock) -> None:
    away = True
    server = Server(lambda _, __: (0, "") if away else None)
    async with writing(server) as writer:
        writer.note(None, plan_of("tenant/a", "tenant/b"))
        await trio.sleep(60)
        writer.note(["tenant/a"], plan_of("tenant/b"))
        away = False
        await trio.sleep(BACKOFF_LIMIT)
    assert server.services == ["b"]


async def test_an_earlier_report_wakes_a_writer_that_waits_for_a_later_one(autojump_clock: MockClock) -> None:
    server = Server()
    async with writing(server) as writer:
        writer.note(None, plan_of("tenant/a"))
        await trio.sleep(FIRST + 100)
        writer.note(["tenant/b"], plan_of("tenant/a", "tenant/b"))
        await trio.sleep(FIRST + 1)
    assert server.services == ["a", "b"]
