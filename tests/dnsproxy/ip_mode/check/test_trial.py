"""What a trial leaves behind on an API server with faults: the status of before, or the command that restores it.

Real API servers and signals are in tests/peers/test_ip_mode_trial.py; a mock clock passes the pauses.
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import httpx2
import pytest
import trio
from trio.testing import MockClock

from dnsproxy.ip_mode.check.trial import RESTORES, run_trial
from dnsproxy.ip_mode.check.trial_result import Trial
from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.http import ApiClient
from tests.dnsproxy.ip_mode.shapes import WEB, service_json
from tests.kit.manifest_api import respond

VIP = {"ip": "192.0.2.1", "ipMode": "VIP"}
PROXY = {"ip": "192.0.2.1", "ipMode": "Proxy"}
SIX = {"ip": "2001:db8::1", "ipMode": "VIP"}


class Api:
    """One Service. Each write has one of the faults: a code, or the seconds until it is made without an answer."""

    def __init__(
        self, clock: MockClock, *faults: int | float, entries: Sequence[dict[str, str]] = (VIP,), then: int = 200
    ) -> None:
        self._clock = clock
        self.object = service_json(ingress=[dict(one) for one in entries])
        self.version = 7
        self.faults = list(faults)
        self.then = then
        self.writes = 0
        self.before_write: list[dict[str, str]] = []
        """What another writer writes before the first of them."""
        self._late: tuple[float, bytes] = (inf, b"")

    @property
    def entries(self) -> Any:
        return self.object["status"]["loadBalancer"]["ingress"]

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if self._clock.current_time() >= self._late[0]:
            self.patch(self._late[1])
            self._late = (inf, b"")
        self.object["metadata"]["resourceVersion"] = str(self.version)
        if request.method == "GET":
            return respond(200, json.dumps(self.object).encode())
        self.writes += 1
        if self.before_write:
            self.entries[:], self.before_write = self.before_write, []
            self.version += 1
        fault = self.faults.pop(0) if self.faults else self.then
        if isinstance(fault, float):
            self._late = (self._clock.current_time() + fault, request.content)
            raise httpx2.ReadError("reset")
        if fault == 200 and self.patch(request.content):
            return respond(200, json.dumps(self.object).encode())
        code = 422 if fault == 200 else fault
        return respond(code, json.dumps({"kind": "Status", "code": code, "message": "so it goes"}).encode())

    def patch(self, content: bytes) -> bool:
        test, *operations = json.loads(content)
        if test["value"] != str(self.version):
            return False
        for one in operations:
            self.entries[int(one["path"].split("/")[-2])]["ipMode"] = one["value"]
        self.version += 1
        return True


async def tried(api: Api) -> Trial:
    cluster = Cluster("http://api.example.org", "the test", lambda: None, lambda: cluster)
    async with ApiClient(cluster, transport=httpx2.MockTransport(api.answer)) as client:
        return await run_trial(client, WEB, (), lambda _: None)


@pytest.mark.parametrize("code", [403, 404, 409, 422, 429], ids=str)
async def test_a_trial_that_was_not_allowed_to_write_leaves_what_others_write_meanwhile(
    code: int, autojump_clock: MockClock
) -> None:
    api = Api(autojump_clock, code)
    api.before_write = [dict(PROXY)]
    trial = await tried(api)
    assert "could not be written" in trial.failure
    assert (api.entries, api.writes) == ([PROXY], 1)


@pytest.mark.parametrize("seconds", [0.0, 3.0, 14.0], ids=lambda one: f"after {one:g} s")
async def test_a_write_that_is_made_after_its_answer_was_lost_is_restored(
    seconds: float, autojump_clock: MockClock
) -> None:
    api = Api(autojump_clock, seconds)
    trial = await tried(api)
    assert "not known" in trial.failure
    assert (api.entries, trial.left, api.writes) == ([VIP], "", 2)


async def test_a_restoring_that_is_made_after_its_answer_was_lost_is_made_once(autojump_clock: MockClock) -> None:
    api = Api(autojump_clock, 200, 2.5, 422, 422)
    trial = await tried(api)
    assert (api.entries, trial.left) == ([VIP], "")


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([PROXY], id="all are Proxy"),
        pytest.param([VIP, PROXY], id="one address twice, once with Proxy"),
        pytest.param([{"hostname": "lb.example.org"}], id="a hostname"),
        pytest.param([], id="no entry any more"),
    ],
)
async def test_a_status_that_is_not_as_it_was_checked_is_not_tried(
    entries: list[dict[str, str]], autojump_clock: MockClock
) -> None:
    api = Api(autojump_clock, entries=entries)
    assert "nothing to try" in (await tried(api)).failure
    assert (api.entries, api.writes) == (entries, 0)


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([VIP, VIP], id="one address twice"),
        pytest.param([VIP, SIX], id="dual stack"),
        pytest.param([VIP, {**SIX, "ipMode": "Proxy"}, {"hostname": "lb.example.org"}], id="another one is Proxy"),
        pytest.param([{"ip": f"192.0.2.{number}", "ipMode": "VIP"} for number in range(1, 51)], id="50 addresses"),
    ],
)
async def test_every_entry_is_as_before(entries: list[dict[str, str]], autojump_clock: MockClock) -> None:
    api = Api(autojump_clock, entries=entries)
    trial = await tried(api)
    assert (api.entries, trial.left, trial.failure, api.writes) == (entries, "", "", 2)


@pytest.fixture
def credentials_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mock clock jumps while a thread reads the credentials anew, so that every deadline would pass meanwhile."""

    async def run_on_the_loop(read: Callable[[], object], *, abandon_on_cancel: bool) -> object:
        del abandon_on_cancel
        return read()

    monkeypatch.setattr(trio.to_thread, "run_sync", run_on_the_loop)


@pytest.mark.usefixtures("credentials_without_a_thread")
@pytest.mark.parametrize("code", [401, 403, 409, 429, 500, 503], ids=str)
async def test_a_restoring_that_is_refused_for_a_while_is_made_later(code: int, autojump_clock: MockClock) -> None:
    api = Api(autojump_clock, 200, *[code] * 5)
    trial = await tried(api)
    assert (api.entries, trial.left) == ([VIP], "")


async def test_if_nothing_can_be_restored_the_command_that_does_it_is_shown(autojump_clock: MockClock) -> None:
    api = Api(autojump_clock, 200, then=403, entries=[VIP, {**SIX, "ipMode": "Proxy"}])
    before = copy.deepcopy(api.entries)
    trial = await tried(api)
    assert api.writes < RESTORES + 3
    patch = json.loads(shlex.split(trial.left)[-1])
    assert patch[0] == {"op": "test", "path": "/status/loadBalancer/ingress/0/ip", "value": VIP["ip"]}
    assert api.entries != before
    api.patch(json.dumps([{"value": str(api.version)}, *patch[1:]]).encode())
    assert api.entries == before
