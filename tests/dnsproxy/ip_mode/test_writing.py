"""Writing until nothing is left to change, against an API server with faults; a mock clock passes the pauses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import httpx2
import pytest
import trio
from trio.testing import MockClock

from dnsproxy.ip_mode.changes import Change, plan_apply
from dnsproxy.ip_mode.selection import Selection
from dnsproxy.ip_mode.writing import TRYING_SECONDS, WRITES, settle
from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.errors import ServerTrouble
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from tests.dnsproxy.ip_mode.shapes import present
from tests.kit.manifest_api import respond

POLICY, BINDING = plan_apply(present(), Selection())


class Api:
    """Answers with these codes, and then with 200; `None` loses the connection after the write."""

    def __init__(self, *codes: int | None, then: int | None = 200) -> None:
        self.codes = list(codes)
        self.then = then
        self.written: list[str] = []
        self.asked: list[str] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        kind = request.url.path.rpartition("/")[0].rpartition("/")[2]
        self.asked.append(kind)
        code = self.codes.pop(0) if self.codes else self.then
        if code in (200, None):
            self.written.append(kind)
        if code is None:
            raise httpx2.ReadError("reset")
        body = {"kind": "Status", "code": code, "message": "so it goes"} if code != 200 else {}
        return respond(code, json.dumps(body).encode())

    async def look(self) -> Sequence[Change]:
        return [one for one in (POLICY, BINDING) if one.write.path.split("/")[-2] not in self.written]


@asynccontextmanager
async def client_of(answer: Callable[[httpx2.Request], httpx2.Response]) -> AsyncIterator[ApiClient]:
    cluster = Cluster("http://api.example.org", "the test", lambda: None, lambda: cluster)
    async with ApiClient(cluster, transport=httpx2.MockTransport(answer)) as client:
        yield client


@pytest.mark.parametrize(
    ("codes", "kinds"),
    [
        pytest.param([], "policies bindings", id="no fault"),
        pytest.param([409], "policies policies bindings", id="changed by another writer"),
        pytest.param([200, 404], "policies bindings bindings", id="deleted after it was read"),
        pytest.param([200, None], "policies bindings", id="written, and the answer is lost"),
        pytest.param([200, 503, 503], "policies bindings bindings bindings", id="the API server restarts between"),
        pytest.param([429], "policies policies bindings", id="a busy API server"),
        pytest.param([500, 409, 503], "policies policies policies policies bindings", id="one fault after another"),
    ],
)
async def test_a_passing_fault_leads_to_a_new_read_and_only_what_is_left_is_written(
    autojump_clock: MockClock,  # noqa: ARG001
    codes: list[int | None],
    kinds: str,
) -> None:
    api = Api(*codes)
    async with client_of(api.answer) as client:
        await settle(client, (POLICY, BINDING), api.look)
    assert [kind.removeprefix("mutatingadmission").removeprefix("policy") for kind in api.asked] == kinds.split()
    assert len(api.written) == 2


@pytest.mark.parametrize(
    ("code", "status", "text"),
    [
        pytest.param(403, 1, "rejects the change", id="a webhook denies it"),
        pytest.param(422, 1, "rejects the change", id="invalid"),
        pytest.param(409, 1, "changed by another writer before each write", id="conflicts without end"),
        pytest.param(503, 3, "may or may not be written", id="down"),
    ],
)
async def test_a_lasting_fault_ends_within_its_time_and_names_what_is_left(
    autojump_clock: MockClock,  # noqa: ARG001
    code: int,
    status: int,
    text: str,
) -> None:
    api = Api(200, then=code)
    async with client_of(api.answer) as client:
        with pytest.raises(StartError, match=text) as raised:
            await settle(client, (POLICY, BINDING), api.look)
    assert raised.value.status == status
    assert "MutatingAdmissionPolicyBinding" in str(raised.value)
    assert trio.current_time() < TRYING_SECONDS + 60


async def test_a_writer_that_undoes_each_write_wins(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    api = Api()

    async def look() -> Sequence[Change]:
        return (POLICY,)

    async with client_of(api.answer) as client:
        with pytest.raises(StartError, match="another writer undid each write"):
            await settle(client, (POLICY,), look)
    assert len(api.asked) == WRITES


async def test_a_failing_read_is_tried_again_too(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    api, faults = Api(), [ServerTrouble("gone"), ServerTrouble("gone")]

    async def look() -> Sequence[Change]:
        if faults:
            raise faults.pop()
        return await api.look()

    async with client_of(api.answer) as client:
        made = await settle(client, (POLICY, BINDING), look)
    assert made == (POLICY, BINDING)


async def test_a_plan_that_is_refused_meanwhile_ends_it(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async def look() -> Sequence[Change]:
        raise StartError("meanwhile: Service shop/web does not exist", status=1)

    async with client_of(Api(409).answer) as client:
        with pytest.raises(StartError, match="meanwhile"):
            await settle(client, (POLICY,), look)
