"""The Events of wholeip on a real API server, and what `kubectl describe service` shows of them.

The clock runs faster than real time, so that turns come soon; the answers come in real time.
"""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.config import load_cluster
from sidecar.kubernetes.http import _TIMEOUTS, ApiClient
from tests.deploy.kubectl import kubectl
from tests.kit.accounts import create_account, write_kubeconfig
from tests.kit.apiserver import ApiServer, in_thread, running_apiserver
from tests.kit.networks import root
from tests.kit.wholeip_objects import READY
from tests.kit.wholeip_world import PATIENCE, running_world
from wholeip.mappings.plan import Part, Plan
from wholeip.mappings.reports import Reason, Report
from wholeip.service_events.service_event import AGENT
from wholeip.service_events.writer import _SECONDS, EventWriter

__all__ = ["root"]
pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "kubectl"), pytest.mark.timeout(300)]

RATE: Final = 5.0
WITHIN: Final = 60 * RATE
"""Virtual seconds for a condition."""


class CountingClient(ApiClient):
    """Counts the answered changes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.answered = 0

    async def change(self, *arguments: Any, **options: Any) -> bytes:
        try:
            return await super().change(*arguments, **options)
        finally:
            self.answered += 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_apiserver(tmp_path_factory.mktemp("events")) as server:
        yield server


@pytest.fixture
def space(server: ApiServer, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    server.create_namespace(name)
    return str(name)


@pytest.fixture
def clock(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> MockClock:
    """The limits of a request hold in real time, as the API server answers in it."""
    longer = {name: seconds and seconds * RATE for name, seconds in _TIMEOUTS.as_dict().items()}
    monkeypatch.setattr("sidecar.kubernetes.http._TIMEOUTS", httpx2.Timeout(**longer))
    monkeypatch.setattr("wholeip.service_events.writer._SECONDS", _SECONDS * RATE)
    mock_clock.rate = RATE
    return mock_clock


def put_service(server: ApiServer, namespace: str, name: str = "vm") -> str:
    """Its uid."""
    body = {"metadata": {"name": name}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}
    return str(server.request("POST", f"/api/v1/namespaces/{namespace}/services", body)["metadata"]["uid"])


def events_of(server: ApiServer, namespace: str) -> list[Any]:
    """Ours: the API server makes Events about Services too."""
    found = server.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return [one for one in found if one["reportingController"] == AGENT.controller]


def described(server: ApiServer, namespace: str, name: str = "vm") -> str:
    """The Events that a user sees."""
    return kubectl(server, "--namespace", namespace, "describe", "service", name).partition("\nEvents:")[2]


def plan_of(*services: tuple[str, str], text: str = "192.0.2.7: it is a node's own") -> Plan:
    """A report for each Service, `NAMESPACE/NAME` and uid."""
    reports = {key: (Report(key, Reason.PROTECTED_ADDRESS, text),) for key, _ in services}
    return Plan({key: Part(reports=reports[key], uid=uid) for key, uid in services})


@asynccontextmanager
async def agent(config: Path, node: str = "n1", *nodes: str) -> AsyncIterator[tuple[EventWriter, CountingClient]]:
    """The writer on a node of a cluster that has `nodes` too."""
    # The deadline of each test (tests/conftest.py) is a minute of this clock.
    with trio.fail_after(10 * WITHIN) as scope:
        scope.shield = True
        client = CountingClient(load_cluster(kubeconfig=str(config)))
        async with client, trio.open_nursery() as nursery:
            writer = EventWriter(client, node, lambda: {node, *nodes}, draw=lambda: 0.0)
            nursery.start_soon(writer.run)
            yield writer, client
            nursery.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(WITHIN):
        while not condition():  # noqa: ASYNC110  # the condition is the API server's
            await trio.sleep(1)


async def test_two_agents_make_one_event_that_describe_shows(clock: MockClock, server: ApiServer, space: str) -> None:
    plan = plan_of((f"{space}/vm", put_service(server, space)))
    with capture_logs() as logs:
        async with (
            agent(server.kubeconfig, "n1", "n2") as (first, one),
            agent(server.kubeconfig, "n2", "n1") as (second, other),
        ):
            for writer in (first, second):
                writer.note(None, plan)
            await until(lambda: one.answered >= 1 and other.answered >= 1)
            shown = await in_thread(described, server, space)
    (event,) = events_of(server, space)
    assert event["reportingInstance"] in {"n1", "n2"}
    assert "Warning  ProtectedAddress" in shown
    assert "switchback.dev/wholeip" in shown
    assert "192.0.2.7: it is a node's own" in shown
    assert logs == []


async def test_a_service_that_is_created_again_has_its_own_event(
    clock: MockClock, server: ApiServer, space: str
) -> None:
    async with agent(server.kubeconfig) as (writer, client):
        for count, text in enumerate(["the first", "the second"], 1):
            writer.note(None, plan_of((f"{space}/vm", put_service(server, space)), text=text))
            await until(lambda count=count: client.answered == count)  # type: ignore[misc]
            shown = await in_thread(described, server, space)
            assert text in shown
            server.request("DELETE", f"/api/v1/namespaces/{space}/services/vm")
    assert "the first" not in shown
    assert len(events_of(server, space)) == 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 5000, id="long"),
        pytest.param("\u00e4\U0001f600\ud800" * 700, id="octets and half a character"),
        pytest.param("a\x1b[31m\r\nb\0\u202e", id="controls"),
    ],
)
async def test_whatever_stands_in_a_detail_there_is_an_event(text: str, clock: MockClock, server: ApiServer) -> None:
    space = f"texts-{len(text)}"
    server.create_namespace(space)
    name = "a" * 63
    reports = tuple(Report(f"{space}/{name}", Reason.BAD_PORT, f"{number}: {text}") for number in range(9))
    plan = Plan({f"{space}/{name}": Part(reports=reports, uid=put_service(server, space, name))})
    with capture_logs() as logs:
        async with agent(server.kubeconfig) as (writer, client):
            writer.note(None, plan)
            await until(lambda: client.answered == 1)
    assert len(events_of(server, space)) == 1
    assert logs == []


async def test_a_missing_right_is_named_and_asked_for_no_more(
    clock: MockClock, server: ApiServer, space: str, tmp_path: Path
) -> None:
    token = create_account(server, space, "without", [])
    config = write_kubeconfig(server, token, tmp_path / "kubeconfig")
    services = [(f"{space}/{name}", put_service(server, space, name)) for name in ("a", "b", "c")]
    with capture_logs() as logs:
        async with agent(config) as (writer, client):
            writer.note(None, plan_of(*services))
            await until(lambda: client.answered == 1)
            await trio.sleep(30)
            assert client.answered == 1
    (log,) = logs
    assert log["right"] == "create on events of events.k8s.io, in every namespace"
    assert events_of(server, space) == []


async def test_a_namespace_that_ends_costs_no_other_one_its_event(
    clock: MockClock, server: ApiServer, space: str
) -> None:
    """No controller runs here, so the namespace never ends."""
    ending = f"{space[:50]}-ending"
    server.create_namespace(ending)
    services = [(f"{one}/vm", put_service(server, one)) for one in (ending, space)]
    server.request("DELETE", f"/api/v1/namespaces/{ending}")
    with capture_logs() as logs:
        async with agent(server.kubeconfig) as (writer, client):
            writer.note(None, plan_of(*services))
            await until(lambda: client.answered == 2)
    assert [(one["event"], one["namespace"]) for one in logs] == [("cannot make an Event", ending)]
    assert len(events_of(server, space)) == 1


async def test_an_api_server_that_was_gone_gets_the_event_afterwards(clock: MockClock, tmp_path: Path) -> None:
    with running_apiserver(tmp_path) as server:
        plan = plan_of(("default/vm", put_service(server, "default")))
        server.kill()
        with capture_logs() as logs:
            async with agent(server.kubeconfig) as (writer, client):
                writer.note(None, plan)
                await until(lambda: client.answered >= 2)
                assert [one["event"] for one in logs] == ["cannot make an Event"]
                await in_thread(server.start)
                await until(lambda: "it is a node's own" in str(events_of(server, "default")))
    # While it starts, it may also answer too late: another kind of error.
    assert {one["event"] for one in logs} == {"cannot make an Event"}


@pytest.mark.peer("nft", "ip", "nsenter", "unshare")
def test_the_agent_makes_an_event_of_a_refused_address(root: None, tmp_path: Path) -> None:
    """The program itself: from a Service with the API server's address to what describe shows."""
    with running_world(tmp_path) as world, world.network.entered():
        world.put_service("vm", "10.96.0.1")
        world.put_slice("vm", ("10.0.0.1", READY))
        world.start_agent("--events")
        deadline = time.monotonic() + PATIENCE
        while "ClusterAddress" not in (shown := described(world.server, "default")):
            assert time.monotonic() < deadline, f"{shown}; {world.log[-3000:]}"
            time.sleep(0.2)
    assert "10.96.0.1: it is the API server's" in shown
