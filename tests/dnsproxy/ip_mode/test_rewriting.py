"""The proof and the rewriting of statuses against an API server with faults; effect.py and status_writes.py too.

Real API servers are in tests/peers/test_ip_mode_apply.py; a mock clock passes the pauses.
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from trio.testing import MockClock

from dnsproxy.ip_mode.effect import WAIT_SECONDS, prove
from dnsproxy.ip_mode.results import Effect, Rewrite
from dnsproxy.ip_mode.rewriting import look_again, rewrite_all
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.status_writes import VIP, format_kubectl
from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.http import ApiClient
from tests.dnsproxy.ip_mode.shapes import WEB, service, service_json
from tests.kit.manifest_api import respond

ONE = [{"ip": "192.0.2.1", "ipMode": VIP}]
MANY = [
    {"ip": "192.0.2.1", "ipMode": VIP},
    {"hostname": "lb.example.org"},
    {"ip": "2001:db8::1", "ipMode": PROXY},
    {"ip": "192.0.2.2"},
]


class Api:
    """Statuses under a policy that works while `in_effect`, which starts or ends after some writes.

    `faults` are the codes of the first answers to writes; None loses the connection.
    """

    def __init__(self, *faults: int | None, in_effect: bool, turns_after: int = 0, ingress: Any = None) -> None:
        self.faults = list(faults)
        self.in_effect = in_effect
        self.turns_after = turns_after
        self.objects = {name: service_json(name, ingress=copy.deepcopy(ingress or ONE)) for name in ("web", "shop")}
        self.stored = 0
        self.writes = 0
        self.lost = False

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        name = request.url.path.split("/")[-2]
        if self.lost:
            raise httpx2.ReadError("reset")
        if name not in self.objects:
            return _failure(404)
        if request.method == "GET":
            return respond(200, json.dumps(self.objects[name]).encode())
        self.writes += 1
        fault = self.faults.pop(0) if self.faults else 200
        if fault is None:
            raise httpx2.ReadError("reset")
        if fault != 200:
            return _failure(fault)
        return respond(200, json.dumps(self._write(request, name)).encode())

    def modes(self, name: str = "web") -> list[str | None]:
        return [point.get("ipMode") for point in self.objects[name]["status"]["loadBalancer"]["ingress"]]

    def _write(self, request: httpx2.Request, name: str) -> Any:
        item = copy.deepcopy(self.objects[name])
        body = json.loads(request.content)
        points = item["status"]["loadBalancer"]["ingress"]
        if isinstance(body, list):
            for operation in body[1:]:
                points[int(operation["path"].split("/")[-2])]["ipMode"] = operation["value"]
        elif body:
            points[:] = body["status"]["loadBalancer"]["ingress"]
        if self.in_effect != (0 < self.turns_after < self.writes):
            for point in points:
                if "ip" in point:
                    point["ipMode"] = PROXY
        if "dryRun" not in request.url.params:
            self.objects[name] = item
            self.stored += 1
        return item


@asynccontextmanager
async def client_of(api: Api) -> AsyncIterator[ApiClient]:
    cluster = Cluster("http://api.example.org", "the test", lambda: None, lambda: cluster)
    async with ApiClient(cluster, transport=httpx2.MockTransport(api.answer)) as client:
        yield client


def _failure(code: int) -> httpx2.Response:
    return respond(code, json.dumps({"kind": "Status", "code": code, "message": "so it goes"}).encode())


async def proved(api: Api, **shape: Any) -> tuple[Effect, str]:
    async with client_of(api) as client:
        proof = await prove(client, service(**shape), lambda _: None)
    assert api.stored == 0
    assert proof.service == WEB
    return proof.effect, proof.text


async def rewritten(api: Api, mode: str, *names: str) -> tuple[Rewrite, ...]:
    async with client_of(api) as client:
        return await rewrite_all(client, [service(name) for name in names or ("web",)], mode, lambda _: None)


@pytest.mark.parametrize(
    ("api", "effect"),
    [
        pytest.param(Api(in_effect=True), Effect.YES, id="at once"),
        pytest.param(Api(in_effect=False, turns_after=3), Effect.YES, id="after a moment"),
        pytest.param(Api(503, None, 429, in_effect=True), Effect.YES, id="after faults"),
        pytest.param(Api(in_effect=False), Effect.NO, id="never"),
        pytest.param(Api(*[503] * 200, in_effect=True), Effect.UNKNOWN, id="down"),
        pytest.param(Api(403, in_effect=True), Effect.UNKNOWN, id="a webhook denies it"),
        pytest.param(Api(422, in_effect=True), Effect.UNKNOWN, id="a status that is refused"),
    ],
)
async def test_the_proof_is_the_api_servers_answer_to_a_dry_run(
    autojump_clock: MockClock, api: Api, effect: Effect
) -> None:
    begun = autojump_clock.current_time()
    assert (await proved(api))[0] is effect
    assert autojump_clock.current_time() - begun < WAIT_SECONDS + 5


async def test_a_status_that_is_proxy_already_proves_nothing_by_itself(autojump_clock: MockClock) -> None:  # noqa: ARG001
    effect, why = await proved(Api(in_effect=False), ingress=[{"ip": "192.0.2.1", "ipMode": PROXY}])
    assert effect is Effect.NO
    assert "stays VIP" in why


async def test_a_service_that_is_deleted_meanwhile_leaves_the_proof_unknown_at_once(autojump_clock: MockClock) -> None:
    api = Api(in_effect=True)
    del api.objects["web"]
    effect, why = await proved(api)
    assert effect is Effect.UNKNOWN
    assert "deleted meanwhile" in why
    assert autojump_clock.current_time() < 1


def set_back(api: Api) -> None:
    api.objects["web"]["status"]["loadBalancer"]["ingress"][0]["ipMode"] = PROXY


def watch(api: Api) -> None:
    set_back(api)
    api.in_effect = True


def delete(api: Api) -> None:
    del api.objects["web"]


def lose(api: Api) -> None:
    api.lost = True


@pytest.mark.parametrize(
    ("meanwhile", "result", "failure"),
    [
        pytest.param(lambda _: None, "rewritten", "", id="nothing"),
        pytest.param(set_back, "rewritten", "", id="a write while the deleted policy still worked"),
        pytest.param(watch, "failed", "such as `dnsproxy ip-mode --watch`, has written it again", id="a watcher"),
        pytest.param(delete, "deleted", "", id="deleted"),
        pytest.param(lose, "failed", "whether it stays so is unknown", id="no API server"),
    ],
)
async def test_the_last_look_is_at_what_another_program_may_have_written_again(
    autojump_clock: MockClock,  # noqa: ARG001
    meanwhile: Callable[[Api], None],
    result: str,
    failure: str,
) -> None:
    api = Api(in_effect=False, ingress=[{"ip": "192.0.2.1", "ipMode": PROXY}])
    web = service(ingress=[{"ip": "192.0.2.1", "ipMode": PROXY}])
    async with client_of(api) as client:
        written = await rewrite_all(client, [web], VIP, lambda _: None)
        assert [one.result for one in written] == ["rewritten"]
        meanwhile(api)
        (seen,) = await look_again(client, written, VIP)
    assert seen.result == result
    assert failure in seen.failure


@pytest.mark.parametrize(
    ("api", "mode", "after"),
    [
        pytest.param(Api(in_effect=True), PROXY, [PROXY], id="through the policy"),
        pytest.param(Api(in_effect=True, ingress=MANY), PROXY, [PROXY, None, PROXY, PROXY], id="each address"),
        pytest.param(Api(in_effect=False, ingress=MANY), VIP, [VIP, None, VIP, VIP], id="as VIP"),
        pytest.param(
            Api(in_effect=True, turns_after=4, ingress=MANY), VIP, [VIP, None, VIP, VIP], id="a policy outlasts"
        ),
        pytest.param(Api(409, 503, None, 422, in_effect=True), PROXY, [PROXY], id="after faults"),
        pytest.param(Api(409, 422, in_effect=False, ingress=MANY), VIP, [VIP, None, VIP, VIP], id="another writer"),
    ],
)
async def test_a_status_is_written_until_it_is_as_wanted(
    autojump_clock: MockClock,  # noqa: ARG001
    api: Api,
    mode: str,
    after: list[str | None],
) -> None:
    (found,) = await rewritten(api, mode)
    assert (api.modes(), found.failure) == (after, "")


@pytest.mark.parametrize(
    ("api", "failure"),
    [
        pytest.param(Api(403, in_effect=True), "403", id="a webhook denies it"),
        pytest.param(Api(*[503] * 100, in_effect=True), "503", id="down for one"),
        pytest.param(Api(*[409] * 100, in_effect=True), "409", id="conflicts without end"),
    ],
)
async def test_one_failure_does_not_stop_the_others(autojump_clock: MockClock, api: Api, failure: str) -> None:  # noqa: ARG001
    first, second = await rewritten(api, PROXY, "web", "shop")
    assert (first.result, second.service.name) == ("failed", "shop")
    assert failure in first.failure
    if failure == "403":
        assert second.result == "rewritten"


async def test_a_policy_that_never_ends_fails_within_the_wait(autojump_clock: MockClock) -> None:
    (found,) = await rewritten(Api(in_effect=True, ingress=[{"ip": "192.0.2.1", "ipMode": PROXY}]), VIP)
    assert (found.result, found.failure) == ("failed", "it is still Proxy")
    assert autojump_clock.current_time() < WAIT_SECONDS + 5


async def test_a_deleted_service_is_no_failure(autojump_clock: MockClock) -> None:  # noqa: ARG001
    api = Api(in_effect=True)
    del api.objects["web"]
    assert [one.result for one in await rewritten(api, PROXY, "web", "shop")] == ["deleted", "rewritten"]


async def test_a_status_as_wanted_is_not_written(autojump_clock: MockClock) -> None:  # noqa: ARG001
    api = Api(in_effect=False)
    (found,) = await rewritten(api, VIP)
    assert (found.result, api.writes) == ("unchanged", 0)


@pytest.mark.parametrize(("mode", "kind", "patch"), [(PROXY, "merge", {}), (VIP, "json", [3])])
def test_the_command_line_is_one_that_a_shell_takes(mode: str, kind: str, patch: Any) -> None:
    found = service(ingress=[*MANY[:2], *MANY[2:]])
    words = shlex.split(format_kubectl(WEB, found, mode))
    assert words[:6] == ["kubectl", "-n", "shop", "patch", "service", "web"]
    assert words[6:9] == ["--subresource=status", f"--type={kind}", "-p"]
    parsed = json.loads(words[9])
    assert parsed == patch or [one["path"].split("/")[-2] for one in parsed] == ["2", "3"]
