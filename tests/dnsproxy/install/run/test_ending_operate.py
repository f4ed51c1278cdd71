"""Ending operate before its stanza goes, and deleting what it made afterwards.

cluster_dns/operate_objects.py is tested here too.
"""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.install.run.ending_operate import delete_objects_of_operate, end_operate
from dnsproxy.operate.decide.facts import ListenPort, Route
from dnsproxy.operate.decide.route_manifest import manifest_of
from sidecar.values.errors import StartError
from tests.kit.object_api import ObjectApi, client_of

OPERATE = ObjectRef("switchback", "operate")
DEPLOYMENT = "/apis/apps/v1/namespaces/switchback/deployments/operate"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/switchback/leases/switchback-operate"
SERVICES = "/api/v1/namespaces/switchback/services"


def installed(*, reads: int = 0) -> ObjectApi:
    """A Deployment whose pods end after some reads, a route Service of operate's, one of people's, and the Lease."""
    api = ObjectApi(outlives={DEPLOYMENT: reads})
    api.put(DEPLOYMENT, {"metadata": {"uid": "first"}})
    api.put(LEASE, {"metadata": {}})
    ports = (ListenPort(443, 20_443),)
    route = Route("relay-nginx", ours=True, relay_to="web/controller", headers="v1", ports=ports, selector=())
    api.put(f"{SERVICES}/relay-nginx", manifest_of(route, namespace="switchback"))
    api.put(f"{SERVICES}/by-hand", {"metadata": {"annotations": {"switchback.dev/relay-to": "web/controller"}}})
    return api


async def test_the_pods_end_and_then_only_what_operate_made_goes(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = installed(reads=3)
    async with client_of(api) as client:
        await end_operate(client, OPERATE, seconds=20)
        assert LEASE in api.objects
        assert await delete_objects_of_operate(client, OPERATE) == 1
        # It may run again.
        await end_operate(client, OPERATE, seconds=20)
        assert await delete_objects_of_operate(client, OPERATE) == 0
    assert list(api.objects) == [f"{SERVICES}/by-hand"]


async def test_pods_that_do_not_end_are_an_error_that_says_what_to_do(
    autojump_clock: object,  # noqa: ARG001
) -> None:
    async with client_of(installed(reads=10_000)) as client:
        with pytest.raises(StartError, match=r"switchback/operate do not end.*kubectl delete node") as caught:
            await end_operate(client, OPERATE, seconds=20)
    assert caught.value.status == 1


async def test_an_operate_that_is_created_again_is_an_error_before_and_after() -> None:
    api = installed()

    api.recreate(DEPLOYMENT)
    async with client_of(api) as client:
        with pytest.raises(StartError, match=r"created switchback/operate again.*Argo CD"):
            await end_operate(client, OPERATE, seconds=20)
        with pytest.raises(StartError, match=r"created switchback/operate again.*Argo CD"):
            await delete_objects_of_operate(client, OPERATE)
    assert {LEASE, f"{SERVICES}/relay-nginx"} < api.objects.keys()


@pytest.mark.parametrize("refused", [("GET", "operate"), ("DELETE", "operate")])
async def test_without_the_right_to_end_it_nothing_goes(refused: tuple[str, str]) -> None:
    api = installed()
    api.refusals[refused] = (403, "no")
    before = set(api.objects)
    async with client_of(api) as client:
        with pytest.raises(StartError, match="nothing was removed") as caught:
            await end_operate(client, OPERATE, seconds=20)
    assert caught.value.status == 3
    assert set(api.objects) == before


@pytest.mark.parametrize("refused", [("DELETE", "services/relay-nginx"), ("DELETE", "leases/switchback-operate")])
async def test_what_is_left_is_named(
    refused: tuple[str, str],
    autojump_clock: object,  # noqa: ARG001
) -> None:
    api = installed()
    api.refusals[refused] = (403, "no right")
    async with client_of(api) as client:
        await end_operate(client, OPERATE, seconds=20)
        with pytest.raises(StartError, match=r"Services and Lease are left.*no right") as caught:
            await delete_objects_of_operate(client, OPERATE)
    assert caught.value.status == 1
