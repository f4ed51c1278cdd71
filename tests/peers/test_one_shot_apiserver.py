"""One-shot lists from a real API server: pages, and a list that is compacted away between two of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from dnsproxy.sources.ingress import INGRESSES, Ingress
from sidecar.kubernetes.config import load_cluster
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.one_shot import list_all
from sidecar.kubernetes.watch_policy import Pace
from tests.kit.apiserver import ApiServer, collection_path

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")
COUNT = 40
numbers = itertools.count()
PACE = Pace(page_size=10, page_octets=5000)


@pytest.fixture
def namespace(apiserver: ApiServer) -> Iterator[str]:
    """A namespace with Ingresses, which are deleted afterwards."""
    name = f"one-shot-{next(numbers)}"
    apiserver.create_namespace(name)
    for number in range(COUNT):
        apiserver.create_ingress(f"i{number:02}", [f"h{number}.example.org"], namespace=name)
    yield name
    apiserver.delete_all_ingresses(namespace=name)


@pytest.fixture
def collection(namespace: str) -> Collection[Ingress]:
    return Collection("Ingress", collection_path(namespace), INGRESSES.type)


async def test_a_list_comes_in_pages(apiserver: ApiServer, collection: Collection[Ingress]) -> None:
    counts = list[int]()
    async with ApiClient(load_cluster(kubeconfig=str(apiserver.kubeconfig))) as client:
        found = await list_all(client, collection, pace=PACE, on_page=counts.append)
    assert len(found) == COUNT
    assert counts == sorted(counts)
    assert len(counts) > 2
    assert counts[0] == 10


async def test_a_list_is_whole_although_etcd_is_compacted_between_its_pages(
    apiserver: ApiServer, namespace: str, collection: Collection[Ingress]
) -> None:
    counts = list[int]()

    def compact(count: int) -> None:
        counts.append(count)
        if len(counts) == 1:
            apiserver.create_ingress("late", ["late.example.org"], namespace=namespace)
            apiserver.compact()

    async with ApiClient(load_cluster(kubeconfig=str(apiserver.kubeconfig))) as client:
        found = await list_all(client, collection, pace=PACE, on_page=compact)
    names = {key.partition("/")[2] for key in found}
    assert names - {"late"} == {f"i{number:02}" for number in range(COUNT)}
