"""A follower of a real kube-apiserver whose etcd goes back to an older state, as after a restored backup."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from dnsproxy.sources.ingress import INGRESSES
from sidecar.kubernetes.config import load_cluster
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.watch_policy import Pace
from tests.kit.apiserver import TOKEN, ApiServer, in_thread, running_apiserver
from tests.kit.relaying import until

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver"), pytest.mark.timeout(300)]

BRISK = Pace(watch_timeout=5, backoff_limit=2)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    with running_apiserver(tmp_path) as server:
        yield server


@dataclass
class Seen:
    status: FollowerStatus = field(default_factory=FollowerStatus)
    names: set[str] = field(default_factory=set)

    def take(self, changes: Changes[object]) -> None:  # type: ignore[type-var]
        for key, value in changes.items():
            (self.names.discard if value is None else self.names.add)(key.removeprefix("default/"))


@asynccontextmanager
async def following(server: ApiServer) -> AsyncIterator[Seen]:
    seen = Seen()
    cluster = await in_thread(load_cluster, kubeconfig=str(server.kubeconfig))
    async with ApiClient(cluster) as client, trio.open_nursery() as nursery:
        nursery.start_soon(lambda: follow(client, INGRESSES, on_change=seen.take, status=seen.status, pace=BRISK))
        await until(lambda: seen.status.watches)
        yield seen
        nursery.cancel_scope.cancel()


def lists_of_ingresses(server: ApiServer) -> int:
    """The number of answered list requests since the API server was started."""
    with server.connection() as connection:
        connection.request("GET", "/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        text = connection.getresponse().read().decode()
    rows = re.findall(r"apiserver_request_total\{(.*?)\} (\d+)", text)
    wanted = ('code="200"', 'resource="ingresses"', 'verb="LIST"')
    return sum(int(count) for labels, count in rows if all(label in labels for label in wanted))


def restart(server: ApiServer, *, restored: bool) -> None:
    server.kill()
    if restored:
        server.etcd.restore()
    server.start()


async def test_a_restored_state_is_noticed_and_followed_from_there_on(server: ApiServer) -> None:
    """The API server accepts the watch from its future, and says nothing."""
    server.create_ingress("kept", ["kept.example.org"])
    server.create_ingress("deleted-later", ["deleted.example.org"])
    server.kill()
    server.etcd.back_up()
    server.start()
    server.delete_ingress("deleted-later")
    for number in range(10):
        server.create_ingress(f"lost-{number}", [f"lost-{number}.example.org"])
    async with following(server) as seen:
        with capture_logs() as logs:
            await until(lambda: len(seen.names) == 11)
            await in_thread(restart, server, restored=True)
            await until(lambda: seen.names == {"kept", "deleted-later"})
            await in_thread(server.create_ingress, "new", ["new.example.org"])
            await until(lambda: "new" in seen.names)
        assert [line["event"] for line in logs if "restored" in line["event"]] == [
            "the cluster was restored to an earlier state"
        ]
        assert seen.status.errors["restored"] == 1
        # Two checks and the list.
        assert await in_thread(lists_of_ingresses, server) == 3


async def test_a_restart_of_the_api_server_costs_it_one_small_request(server: ApiServer) -> None:
    """And one list if it says that the version is too old for it.

    Its watch cache starts at the version of etcd when it reads the collection. If its own objects were written before
    that, the version of the last change of an Ingress is older than the cache.
    """
    server.create_ingress("a", ["a.example.org"])
    async with following(server) as seen:
        await until(lambda: seen.names == {"a"})
        await in_thread(restart, server, restored=False)
        await in_thread(server.create_ingress, "b", ["b.example.org"])
        await until(lambda: seen.names == {"a", "b"})
        gone = seen.status.errors["gone"]
        assert gone in (0, 1)
        await until(lambda: seen.status.lists == 1 + gone)
        assert seen.status.errors["restored"] == 0
        assert await in_thread(lists_of_ingresses, server) == 1 + gone
        # Watches that end in time are followed by no check.
        watches = seen.status.watches
        await until(lambda: seen.status.watches >= watches + 2)
        assert (seen.status.lists, seen.status.errors["gone"]) == (1 + gone, gone)
        assert await in_thread(lists_of_ingresses, server) == 1 + gone
