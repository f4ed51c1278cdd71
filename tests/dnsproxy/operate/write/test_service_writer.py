"""Guarded writes of route Services; the API server answers as a test says. tests/peers has a real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from dnsproxy.operate.decide.plan import Change, Create, Delete, Patch
from dnsproxy.operate.write.service_writer import ServiceWriter
from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.http import ApiClient
from tests.dnsproxy.operate.decide.cluster import route_of
from tests.kit.manifest_api import respond

ROUTE = route_of()
PATCHED = Patch(replace(ROUTE, subjects=""), ROUTE)
SERVICES = "/api/v1/namespaces/switchback/services"


@dataclass
class Server:
    """Answers each request with the next status, and the last one for ever."""

    statuses: list[int] = field(default_factory=lambda: [200])
    message: str = "as the test says"
    asked: list[tuple[str, str, dict[str, str], str, Any]] = field(default_factory=list)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        kind = request.headers["content-type"]
        body = json.loads(request.content)
        self.asked.append((request.method, request.url.path, dict(request.url.params), kind, body))
        said = {"kind": "Status", "code": status, "message": self.message}
        return respond(status, json.dumps(said).encode())


@asynccontextmanager
async def writing(*statuses: int) -> AsyncIterator[tuple[ServiceWriter, Server]]:
    server = Server(list(statuses) or [200])
    cluster = Cluster("http://api.example.org", "the test", lambda: None, lambda: cluster)
    async with ApiClient(cluster, transport=httpx2.MockTransport(server.answer)) as client:
        yield ServiceWriter(client, "switchback"), server


@pytest.mark.parametrize(
    ("change", "method", "path", "kind", "part"),
    [
        pytest.param(
            Create(ROUTE), "POST", SERVICES, "application/json", lambda body: body["metadata"]["name"], id="create"
        ),
        pytest.param(
            PATCHED,
            "PATCH",
            f"{SERVICES}/relay-nginx",
            "application/merge-patch+json",
            lambda body: body["metadata"]["resourceVersion"],
            id="patch",
        ),
        pytest.param(
            Delete(ROUTE),
            "DELETE",
            f"{SERVICES}/relay-nginx",
            "application/json",
            lambda body: body["preconditions"]["resourceVersion"],
            id="delete",
        ),
    ],
)
async def test_each_change_is_one_request_that_names_the_version_that_was_read(
    change: Change, method: str, path: str, kind: str, part: Callable[[Any], str]
) -> None:
    async with writing() as (writer, server):
        assert await writer.write([change], now=0.0) == [change]
    ((asked, where, params, sent, body),) = server.asked
    assert (asked, where, sent) == (method, path, kind)
    assert part(body) == ("relay-nginx" if isinstance(change, Create) else "7")
    assert params == ({} if isinstance(change, Delete) else {"fieldManager": "switchback-operate"})
    assert (writer.written, writer.faults) == (1, {})


async def test_another_writer_that_was_faster_is_no_fault() -> None:
    async with writing(409, 404, 200) as (writer, server):
        for now, version in ((0.0, "7"), (0.1, "8"), (0.2, "9")):
            change = Patch(
                replace(ROUTE, resource_version=version, subjects=""), replace(ROUTE, resource_version=version)
            )
            await writer.write([change], now=now)
            assert writer.faults == {}
    assert len(server.asked) == 3
    assert writer.written == 1


async def test_a_refusal_names_the_right_that_is_missing_and_is_repeated_after_a_while() -> None:
    async with writing(403) as (writer, server):
        server.message = 'services "relay-nginx" is forbidden: User "a" cannot patch resource "services"'
        with capture_logs() as logs:
            for now in range(25):
                assert await writer.write([PATCHED], now=float(now)) == []
    assert len(server.asked) == 3
    assert "create, patch and delete on services there are needed" in writer.faults["relay-nginx"]
    assert len([line for line in logs if line["event"] == "route Service not written"]) == 1
    assert writer.errors == {"forbidden": 3}


async def test_a_quota_is_no_missing_right() -> None:
    async with writing(403) as (writer, server):
        server.message = 'services "relay-nginx" is forbidden: exceeded quota: small'
        await writer.write([PATCHED], now=0.0)
    assert "exceeded quota" in writer.faults["relay-nginx"]
    assert "are needed" not in writer.faults["relay-nginx"]


async def test_a_change_that_fails_moves_no_other() -> None:
    other = Create(replace(ROUTE, name="relay-other"))
    async with writing(500, 200) as (writer, _):
        assert await writer.write([PATCHED, other], now=0.0) == [other]
        assert list(writer.faults) == ["relay-nginx"]
        assert await writer.write([], now=1.0) == []
        assert writer.faults == {}


async def test_a_right_that_is_missing_is_named_also_after_another_program_had_undone_writes() -> None:
    async with writing(*[200] * 4, 403) as (writer, server):
        server.message = 'services "relay-nginx" is forbidden: User "a" cannot patch resource "services"'
        for now in range(60):
            version = str(now) if len(server.asked) < 4 else "last"
            changed = Patch(
                replace(ROUTE, resource_version=version, headers="v2"), replace(ROUTE, resource_version=version)
            )
            await writer.write([changed], now=float(now))
            if writer.errors["forbidden"]:
                assert "create, patch and delete on services there are needed" in writer.faults["relay-nginx"], now
    assert writer.errors["forbidden"] > 1


async def test_a_program_that_keeps_undoing_a_write_is_named() -> None:
    async with writing() as (writer, server):
        for now in range(30):
            version = str(now)
            changed = Patch(
                replace(ROUTE, resource_version=version, headers="v2"), replace(ROUTE, resource_version=version)
            )
            await writer.write([changed], now=float(now))
    assert len(server.asked) < 10
    assert writer.faults == {"relay-nginx": "another program keeps changing it, so the next write waits"}
