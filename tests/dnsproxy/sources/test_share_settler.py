"""What is left out is read again when there is room, from a cluster that changes meanwhile."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.annotations import HOSTNAME
from dnsproxy.sources.cluster_sources import ClusterSources
from dnsproxy.sources.gateway.kinds import GROUP
from dnsproxy.sources.settings import ClusterSettings, GatewayOptions, IngressOptions
from tests.dnsproxy.sources.gateway.objects import gateway, listener, manifest, route
from tests.kit.faulty_api import client_in_memory, failure
from tests.kit.live_api import LiveApi

ALL: Final = ClusterSettings(ingress=IngressOptions(), gateway=GatewayOptions(), services=True)
ONE_INGRESS: Final = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses"


def make_api() -> LiveApi:
    api = LiveApi()
    api.provide("networking.k8s.io/v1", "ingresses", "ingressclasses")
    api.provide("v1", "namespaces", "services")
    api.provide(f"{GROUP}/v1", "gateways", "httproutes")
    return api


def put_ingress(api: LiveApi, name: str, day: int, *hosts: str, namespace: str = "shop") -> None:
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": f"2026-11-{day:02}T00:00:00Z"}
    rules = [{"host": f"{host}.example.org"} for host in hosts]
    api.put("networking.k8s.io", "ingresses", {"metadata": metadata, "spec": {"rules": rules}})


@asynccontextmanager
async def watching(api: LiveApi, *, per_namespace: int) -> AsyncIterator[Registry]:
    limits = NameLimits(per_object=3, per_namespace=per_namespace, total=100)
    registry = Registry(targets=Targets(("192.0.2.10",)), guards=Guards(), limits=limits)
    keeper = TableKeeper(registry, ttl=5, publish=lambda _: None, sources=ClusterSources.reports(ALL))
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        nursery.start_soon(ClusterSources(ALL, keeper).follow, client)
        await until(lambda: not keeper.waiting_for)
        yield registry
        nursery.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
        await trio.sleep(0.1)


async def until_names(registry: Registry, *names: str) -> None:
    await until(lambda: set(registry.store.names()) == {f"{name}.example.org" for name in names})


async def test_ingress_that_was_left_out_comes_back_with_its_present_hosts(autojump_clock: MockClock) -> None:
    api = make_api()
    put_ingress(api, "old", 1, "a", "b", "c")
    put_ingress(api, "new", 2, "d", "e")
    put_ingress(api, "other", 3, "f", namespace="blog")
    async with watching(api, per_namespace=4) as registry:
        await until_names(registry, "a", "b", "c", "f")
        put_ingress(api, "new", 2, "d", "g")
        await trio.sleep(1)
        await until_names(registry, "a", "b", "c", "f")
        api.remove("networking.k8s.io", "ingresses", "shop/old")
        await until_names(registry, "d", "g", "f")
        assert registry.shares.left_out() == (0, 0)


async def test_ingress_without_a_class_that_comes_back_has_the_present_default(autojump_clock: MockClock) -> None:
    """Its source keeps nothing of it either while it is left out."""
    api = make_api()
    put_ingress(api, "old", 1, "a")
    put_ingress(api, "new", 2, "b")
    async with watching(api, per_namespace=1) as registry:
        await until_names(registry, "a")
        annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
        api.put("networking.k8s.io", "ingressclasses", {"metadata": {"name": "edge", "annotations": annotations}})
        await until(lambda: [claim.terms.ingress_class for claim in registry.store.claims()] == ["edge"])
        api.remove("networking.k8s.io", "ingresses", "shop/old")
        await until_names(registry, "b")
        assert [claim.terms.ingress_class for claim in registry.store.claims()] == ["edge"]


async def test_older_object_takes_the_place_of_the_youngest(autojump_clock: MockClock) -> None:
    api = make_api()
    put_ingress(api, "new", 2, "a", "b")
    async with watching(api, per_namespace=3) as registry:
        await until_names(registry, "a", "b")
        put_ingress(api, "old", 1, "c", "d")
        await until_names(registry, "c", "d")
        put_ingress(api, "old", 1, "c")
        await until_names(registry, "a", "b", "c")


async def test_read_that_fails_is_tried_again(autojump_clock: MockClock) -> None:
    api = make_api()
    put_ingress(api, "old", 1, "a")
    put_ingress(api, "new", 2, "b")
    async with watching(api, per_namespace=1) as registry:
        await until_names(registry, "a")
        api.faults[ONE_INGRESS] = failure(500, "InternalError")
        api.remove("networking.k8s.io", "ingresses", "shop/old")
        await until_names(registry)
        await trio.sleep(10)
        assert registry.shares.is_wanted("Ingress", "shop/new")
        api.faults.clear()
        await until_names(registry, "b")


async def test_kind_whose_read_fails_keeps_no_other_waiting(autojump_clock: MockClock) -> None:
    """The conversion webhook of its definition is dead, for example."""
    api = make_api()
    put_ingress(api, "old", 1, "a", "b")
    put_ingress(api, "new", 2, "c")
    metadata = {"namespace": "shop", "name": "git", "creationTimestamp": "2026-11-03T00:00:00Z"}
    service = {"metadata": metadata | {"annotations": {HOSTNAME: "d.example.org"}}, "spec": {"clusterIP": "10.96.0.8"}}
    api.put("", "services", service)
    async with watching(api, per_namespace=2) as registry:
        await until_names(registry, "a", "b")
        api.faults[ONE_INGRESS] = failure(500, "InternalError")
        api.remove("networking.k8s.io", "ingresses", "shop/old")
        with capture_logs() as logs:
            with trio.fail_after(4):
                await until_names(registry, "d")
            await trio.sleep(8)
        assert [one["kind"] for one in logs if one["event"].startswith("cannot read an object")] == ["Ingress"]
        assert api.asked_for(ONE_INGRESS) <= 4
        api.faults.clear()
        await until_names(registry, "c", "d")


async def test_routes_and_services_come_back_too(autojump_clock: MockClock) -> None:
    """Of one age, objects are ordered by kind: HTTPRoute before Ingress before Service."""
    api = make_api()
    api.put(GROUP, "gateways", manifest(gateway(listener("*.example.org"))))
    put_ingress(api, "old", 1, "a")
    metadata = {"namespace": "shop", "creationTimestamp": "2026-11-02T00:00:00Z"}
    item = manifest(route("b.example.org", place="shop/web"))
    api.put(GROUP, "httproutes", {**item, "metadata": {**item["metadata"], **metadata}})
    annotated = {**metadata, "name": "git", "annotations": {HOSTNAME: "c.example.org"}}
    api.put("", "services", {"metadata": annotated, "spec": {"clusterIP": "10.96.0.8"}})
    async with watching(api, per_namespace=1) as registry:
        await until_names(registry, "a")
        api.remove("networking.k8s.io", "ingresses", "shop/old")
        await until_names(registry, "b")
        api.remove(GROUP, "httproutes", "shop/web")
        await until_names(registry, "c")
