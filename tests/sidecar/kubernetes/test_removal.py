"""Removal of objects, and of workloads with their pods; tests/deploy has the same with a real garbage collector."""

from __future__ import annotations

import pytest
import trio

from sidecar.kubernetes.errors import Forbidden
from sidecar.kubernetes.removal import Ended, delete_object, end_workload, is_there
from tests.kit.object_api import ObjectApi, client_of

WORKLOAD = "/apis/apps/v1/namespaces/switchback/deployments/operate"


def api_with_workload(*, reads: int = 0) -> ObjectApi:
    """A workload whose pods end after some reads."""
    api = ObjectApi(outlives={WORKLOAD: reads})
    api.put(WORKLOAD, {"metadata": {"uid": "first"}})
    return api


async def test_a_workload_has_ended_when_the_api_server_no_longer_has_it(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api, passed = api_with_workload(reads=4), list[float]()
    async with client_of(api) as client:
        assert await end_workload(client, WORKLOAD, seconds=20, on_wait=passed.append) is Ended.GONE
        assert not await is_there(client, WORKLOAD)
    assert passed == [0, 1, 2, 3]


async def test_a_workload_without_pods_or_without_itself_has_ended_at_once() -> None:
    api = api_with_workload()
    async with client_of(api) as client:
        assert await end_workload(client, WORKLOAD, seconds=20) is Ended.GONE
        assert await end_workload(client, WORKLOAD, seconds=20) is Ended.GONE
    assert api.writes() == [("DELETE", "operate")]


async def test_pods_on_a_lost_node_do_not_end(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    async with client_of(api_with_workload(reads=1000)) as client:
        assert await end_workload(client, WORKLOAD, seconds=20) is Ended.REMAINS
        assert trio.current_time() == pytest.approx(20, abs=1)


async def test_a_workload_that_another_program_creates_again_is_told_from_one_that_remains() -> None:
    api = api_with_workload()

    api.recreate(WORKLOAD)
    async with client_of(api) as client:
        assert await end_workload(client, WORKLOAD, seconds=20) is Ended.AGAIN
    assert api.objects[WORKLOAD]["metadata"]["uid"] == "again"


async def test_an_object_that_is_not_there_is_deleted_already() -> None:
    async with client_of(ObjectApi()) as client:
        await delete_object(client, WORKLOAD)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_refusal_is_an_error_and_nothing_was_deleted(method: str) -> None:
    api = api_with_workload()
    api.refusals[method, "operate"] = (403, "no")
    async with client_of(api) as client:
        with pytest.raises(Forbidden):
            await end_workload(client, WORKLOAD, seconds=20)
    assert WORKLOAD in api.objects
