"""Replicas and one Lease, on a server with optimistic locking; tests/peers has a real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
import trio
import trio.testing

from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.leases.leading import DURATION, GIVE_UP
from sidecar.kubernetes.leases.lease_keeper import LeaseKeeper
from tests.kit.manifest_api import respond


@dataclass
class Server:
    """One Lease; `down`, `denied` and `loses_goodbyes` are faults."""

    lease: dict[str, Any] | None = None
    version: int = 0
    down: bool = False
    denied: bool = False
    loses_goodbyes: bool = False
    """A process that dies gives nothing back."""
    writers: list[str] = field(default_factory=list)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if self.down:
            raise httpx2.ConnectError("away")
        if self.denied:
            return _said(403, {"kind": "Status", "code": 403, "message": "leases is forbidden"})
        if request.method == "GET":
            return _said(200, self.lease) if self.lease else _said(404, {"kind": "Status", "code": 404})
        body = json.loads(request.content)
        if self.loses_goodbyes and not body["spec"]["holderIdentity"]:
            raise httpx2.ConnectError("the process is dead")
        read = body["metadata"].get("resourceVersion", "")
        if read != (self.lease["metadata"]["resourceVersion"] if self.lease else ""):
            return _said(409, {"kind": "Status", "code": 409, "message": "the object has been modified"})
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        self.writers.append(body["spec"]["holderIdentity"])
        return _said(201 if request.method == "POST" else 200, body)


def _said(status: int, body: Any) -> httpx2.Response:
    return respond(status, json.dumps(body).encode())


@asynccontextmanager
async def client_of(server: Server) -> AsyncIterator[ApiClient]:
    cluster = Cluster("http://api.example.org", "the test", lambda: None, lambda: cluster)
    async with ApiClient(cluster, transport=httpx2.MockTransport(server.answer)) as client:
        yield client


async def test_one_of_two_replicas_leads_and_the_other_follows_when_it_is_gone(
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    server = Server(loses_goodbyes=True)
    async with client_of(server) as client, trio.open_nursery() as nursery:
        first, second = (
            LeaseKeeper(client, "switchback", "switchback-operate", identity=one, logger="test") for one in ("a", "b")
        )
        life = trio.CancelScope()

        async def live() -> None:
            with life:
                await first.run()

        nursery.start_soon(live)
        await trio.sleep(1)
        nursery.start_soon(second.run)
        for _ in range(20):
            await trio.sleep(1)
            assert (first.leads, second.leads) == (True, False)
        assert second.holder == "a"
        life.cancel()
        await trio.sleep(DURATION - 5)
        assert not second.leads
        await trio.sleep(10)
        assert second.leads
        nursery.cancel_scope.cancel()


async def test_a_replica_that_ends_gives_the_lease_back(autojump_clock: trio.testing.MockClock) -> None:  # noqa: ARG001
    server = Server()
    async with client_of(server) as client:
        keeper = LeaseKeeper(client, "switchback", "switchback-operate", identity="a", logger="test")
        with trio.move_on_after(2):
            await keeper.run()
    assert server.writers == ["a", ""]
    assert server.lease is not None
    assert server.lease["spec"]["leaseDurationSeconds"] == DURATION


@pytest.mark.parametrize("fault", ["down", "denied"])
async def test_a_leader_without_the_api_server_stops_before_another_may_follow(
    fault: str,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    server = Server()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        keeper = LeaseKeeper(client, "switchback", "switchback-operate", identity="a", logger="test")
        nursery.start_soon(keeper.run)
        await trio.sleep(1)
        assert keeper.leads
        setattr(server, fault, True)
        await trio.sleep(GIVE_UP)
        assert not keeper.leads
        assert keeper.fault
        setattr(server, fault, False)
        await trio.sleep(DURATION)
        assert keeper.leads
        assert keeper.fault == ""
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("renewed", "age"),
    [
        pytest.param({"renewTime": "2020-01-02T03:04:05.000000Z"}, True, id="years ago"),
        pytest.param({"renewTime": "2999-01-02T03:04:05.000000Z"}, False, id="by a clock that is ahead"),
        pytest.param({"renewTime": "2020-01-02T03:04:05"}, False, id="no time zone"),
        pytest.param({"renewTime": "yesterday"}, False, id="garbage"),
        pytest.param({}, False, id="no time"),
    ],
)
async def test_the_age_of_a_lease_is_known_where_its_time_can_be_read(
    renewed: dict[str, str],
    age: bool,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    server = Server(lease={"metadata": {"name": "x", "resourceVersion": "0"}, "spec": renewed}, version=7)
    async with client_of(server) as client, trio.open_nursery() as nursery:
        keeper = LeaseKeeper(client, "switchback", "switchback-operate", identity="a", logger="test")
        nursery.start_soon(keeper.run)
        await trio.sleep(1)
        assert keeper.leads
        assert (keeper.state.other_until < trio.current_time() - 3600) is age
        assert keeper.state.other_until <= trio.current_time()
        nursery.cancel_scope.cancel()


async def test_garbage_is_no_lease(autojump_clock: trio.testing.MockClock) -> None:  # noqa: ARG001
    server = Server(lease={"metadata": {"name": 7}, "spec": []})
    async with client_of(server) as client, trio.open_nursery() as nursery:
        keeper = LeaseKeeper(client, "switchback", "switchback-operate", identity="a", logger="test")
        nursery.start_soon(keeper.run)
        await trio.sleep(5)
        assert not keeper.leads
        assert "cannot be read" in keeper.fault
        nursery.cancel_scope.cancel()


async def test_the_long_name_of_a_holder_is_shown_cut_and_compared_whole(
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    theirs = "x" * 200_000
    server = Server()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        keepers = [
            LeaseKeeper(client, "switchback", "switchback-operate", identity=one, logger="test")
            for one in (theirs, f"{theirs}y")
        ]
        for keeper in keepers:
            nursery.start_soon(keeper.run)
            await trio.sleep(1)
        assert [keeper.leads for keeper in keepers] == [True, False]
        assert [len(keeper.holder) < 400 for keeper in keepers] == [True, True]
        nursery.cancel_scope.cancel()
