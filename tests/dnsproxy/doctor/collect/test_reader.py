"""The reader: failures are facts with the name of their request, and requests run side by side, but not all at once."""

from __future__ import annotations

import httpx2
import pytest
from trio.testing import MockClock

from dnsproxy.doctor.collect.reader import MOST_AT_ONCE, Reader
from dnsproxy.doctor.facts.model import ReadFailure
from sidecar.kubernetes.structs.network import Service
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.loop.side_by_side import read_each
from sidecar.values.errors import StartError
from tests.dnsproxy.doctor.collect.cluster_api import MAPS, Api
from tests.kit.manifest_api import respond

SERVICES = "/api/v1/services"
NEVER = 1000.0


async def test_long_lists_come_in_pages_and_a_bad_object_is_skipped() -> None:
    good = [{"metadata": {"name": f"s{number}", "namespace": "a"}} for number in range(1200)]
    api = Api({"/api/v1/services": [*good, {"metadata": {"name": None}}, {"spec": {}}]})
    async with api.client() as client:
        reader = Reader(client)
        found = await reader.list("/api/v1/services", Service, "list services")
    assert found is not None
    assert len(found) == 1200
    assert len(api.asked) == 2
    assert next(refusal.what for refusal in reader.failures) == "one of list services"


async def test_a_time_out_names_the_request_and_the_seconds(autojump_clock: MockClock) -> None:
    api = Api({SERVICES: []}, delay=lambda _: NEVER)
    async with api.client() as client:
        reader = Reader(client)
        begun = autojump_clock.current_time()
        assert await reader.list(SERVICES, Service, "list services") is None
    assert autojump_clock.current_time() - begun == pytest.approx(15)
    assert reader.failures == (ReadFailure("list services", f"GET {SERVICES}: no answer within 15 s"),)


async def test_each_request_has_a_deadline_of_its_own_while_others_wait(autojump_clock: MockClock) -> None:
    begun = autojump_clock.current_time()
    paths = [f"{MAPS}/{number}" for number in range(20)]
    api = Api({path: {"metadata": {"name": "a"}} for path in paths}, delay=lambda _: 14.0)
    async with api.client() as client:
        reader = Reader(client)
        found = await read_each(lambda path: reader.get(path, ConfigMap, path), paths)
    assert all(found)
    assert reader.failures == ()
    assert api.most_under_way == MOST_AT_ONCE
    assert autojump_clock.current_time() - begun == pytest.approx(3 * 14)


async def test_the_progress_names_the_reads_under_way(autojump_clock: MockClock) -> None:
    begun = autojump_clock.current_time()
    shown: list[str] = []
    paths = [f"{MAPS}/{number}" for number in range(5)]
    api = Api({}, delay=lambda path: 1.0 + int(path[-1]))
    async with api.client() as client:
        reader = Reader(client, shown.append)
        await read_each(lambda path: reader.get(path, ConfigMap, f"get {path[-1]}"), paths)
    assert {line.rpartition(" (")[2] for line in shown} >= {f"{done} of 5)" for done in range(5)}
    assert autojump_clock.current_time() - begun == pytest.approx(5)
    assert shown[-1] == "reading: get 4 (4 of 5)"
    assert any(line.endswith(" and 2 more (0 of 5)") and line.startswith("reading: get ") for line in shown)


async def test_the_order_of_failures_is_not_that_of_the_answers(autojump_clock: MockClock) -> None:
    begun = autojump_clock.current_time()
    seen = set()
    paths = [f"{MAPS}/{number}" for number in range(3)]
    for slow in paths:
        api = Api({}, status=dict.fromkeys(paths, 403), delay=lambda path, slow=slow: 1.0 if path == slow else 0.0)  # type: ignore[misc]
        async with api.client() as client:
            reader = Reader(client)
            await read_each(lambda path, reader=reader: reader.get(path, ConfigMap, path), paths)  # type: ignore[misc]
        seen.add(reader.failures)
    assert autojump_clock.current_time() - begun == pytest.approx(3)
    assert len(seen) == 1
    assert [failure.what for failure in seen.pop()] == paths


async def test_rejected_credentials_end_the_reading_with_one_plain_error() -> None:
    paths = [f"{MAPS}/{number}" for number in range(3)]
    async with Api({}, status=dict.fromkeys(paths, 401)).client() as client:
        reader = Reader(client)
        with pytest.raises(StartError, match="could not be asked"):
            await read_each(lambda path: reader.get(path, ConfigMap, path), paths)


@pytest.mark.parametrize(("code", "expected"), [(404, 0), (403, 1), (500, 1)])
async def test_a_config_map_that_is_absent_is_no_failure(code: int, expected: int) -> None:
    async with Api({}, status={f"{MAPS}/a": code}).client() as client:
        reader = Reader(client)
        assert await reader.config_map("kube-system", "a") is None
    assert len(reader.failures) == expected


async def test_a_list_that_takes_too_long_as_a_whole_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr("dnsproxy.doctor.collect.reader.LIST_SECONDS", 20.0)
    rows = [{"metadata": {"name": f"s{number}", "annotations": {"a": "x" * 100_000}}} for number in range(600)]
    api = Api({SERVICES: rows}, delay=lambda _: 14.0)
    async with api.client() as client:
        reader = Reader(client)
        assert await reader.list(SERVICES, Service, "list services") is None
    assert autojump_clock.current_time() == pytest.approx(20)
    assert reader.failures == (ReadFailure("list services", f"GET {SERVICES}: no whole list within 20 s"),)


async def test_the_progress_counts_the_objects_of_a_long_list() -> None:
    rows = [{"metadata": {"name": f"s{number}", "annotations": {"a": "x" * 10_000}}} for number in range(900)]
    shown: list[str] = []
    api = Api({SERVICES: rows})
    async with api.client() as client:
        assert len(await Reader(client, shown.append).list(SERVICES, Service, "list services") or ()) == 900
    assert "reading: list services: 500 (0 of 1)" in shown
    assert shown.index("reading: list services (0 of 1)") < shown.index("reading: list services: 500 (0 of 1)")


class Expiring(Api):
    """An API server that answers each second page with 410 a few times."""

    expired = 0
    times = 1

    def decide(self, request: httpx2.Request) -> httpx2.Response:
        if "continue" in request.url.params and self.expired < self.times:
            self.expired += 1
            return respond(410, b'{"kind": "Status", "code": 410, "reason": "Expired"}')
        return super().decide(request)


@pytest.mark.parametrize(("times", "complete"), [(1, True), (2, True), (3, False)])
async def test_a_list_that_expires_in_the_middle_is_read_again(times: int, complete: bool) -> None:
    api = Expiring({SERVICES: [{"metadata": {"name": f"s{number}"}} for number in range(1200)]})
    api.times = times
    async with api.client() as client:
        reader = Reader(client)
        found = await reader.list(SERVICES, Service, "list services")
    assert (found is not None, [one.what for one in reader.failures]) == (
        complete,
        [] if complete else ["list services"],
    )
    assert len(found or ()) == (1200 if complete else 0)
