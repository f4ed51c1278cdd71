"""The target `auto`: Services of our own namespace say which class or Gateway they answer for, and are followed."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.registry import Registry
from dnsproxy.sources.cluster_sources import STEERING
from dnsproxy.sources.settings import ClusterSettings, IngressOptions
from tests.dnsproxy.sources.test_cluster_sources import ALL, Watched, make_api, put_ingress, watching
from tests.kit.faulty_api import failure
from tests.kit.live_api import LiveApi

FIRST, SECOND = ("10.96.1.1",), ("10.96.1.2",)
AUTO: Final = replace(ALL, steers=True, routes_namespace="own")
NGINX, GATEWAY = "ingressclass/nginx", "gateway/web/gate"
HOSTS: Final = ("app.example.org", "web.example.org", "git.example.org")


def put_route_service(
    api: LiveApi, name: str, subjects: str | None, *addresses: str, ready: bool = True, created: str = ""
) -> None:
    annotations = {} if subjects is None else {"switchback.dev/for": subjects}
    metadata = {"name": name, "namespace": "own", "annotations": annotations, "creationTimestamp": created or None}
    ports = [{"name": "https", "port": 443}]
    spec = {"clusterIP": addresses[0], "clusterIPs": list(addresses), "ports": ports}
    api.put("", "services", {"metadata": metadata, "spec": spec})
    part = {"name": f"{name}-1", "namespace": "own", "labels": {"kubernetes.io/service-name": name}}
    endpoints = [{"addresses": ["192.0.2.7"], "conditions": {"ready": ready}}]
    item = {"metadata": part, "addressType": "IPv4", "ports": ports, "endpoints": endpoints}
    api.put("discovery.k8s.io", "endpointslices", item)


def make_cluster() -> LiveApi:
    """An Ingress of a class, an HTTPRoute of a Gateway, and a Service with a hostname of its own."""
    api = make_api()
    rules = {"ingressClassName": "nginx", "rules": [{"host": "app.example.org"}]}
    api.put("networking.k8s.io", "ingressclasses", {"metadata": {"name": "nginx"}, "spec": {"controller": "x/y"}})
    api.put("networking.k8s.io", "ingresses", {"metadata": {"name": "app", "namespace": "shop"}, "spec": rules})
    return api


def answers(watched: Watched) -> list[Any]:
    return [watched.at(host) for host in HOSTS]


def gateway_of(watched: Watched) -> str:
    (claim,) = watched.keeper.registry.store.claims_for("web.example.org")
    return f"gateway/{claim.terms.gateway}"


async def test_without_a_service_for_them_names_are_not_claimed(autojump_clock: MockClock) -> None:
    async with watching(make_cluster(), AUTO, target="auto") as watched:
        await watched.until_ready()
        assert answers(watched) == [None, None, None]
        registry = watched.keeper.registry
        assert registry.outcomes.waiting == 0
        reasons = [one.reason for host in HOSTS for one in registry.verdict(host, Reach.NAME).excluded]
        assert reasons == [
            "its target is auto, and no Service is for ingressclass/nginx (switchback.dev/for)",
            f"its target is auto, and no Service is for {gateway_of(watched)} (switchback.dev/for)",
            "its target is auto, and it has neither an ingress class nor a Gateway",
        ]
        assert watched.sources.consistent


async def test_each_class_and_gateway_is_answered_with_its_own_service(autojump_clock: MockClock) -> None:
    api = make_cluster()
    put_route_service(api, "first", NGINX, *FIRST)
    async with watching(api, AUTO, target="auto") as watched:
        await watched.until_ready()
        assert answers(watched) == [FIRST, None, None]
        put_route_service(api, "second", gateway_of(watched), *SECOND)
        await watched.until_at("web.example.org", SECOND)
        put_route_service(api, "second", gateway_of(watched), *SECOND, ready=False)
        await watched.until_at("web.example.org", ())
        assert watched.at("app.example.org") == FIRST
        put_route_service(api, "second", None, *SECOND)
        await watched.until_at("web.example.org", None)
        put_route_service(api, "first", f"{NGINX},{gateway_of(watched)}", *FIRST)
        await watched.until_at("web.example.org", FIRST)
        api.remove("", "services", "own/first")
        await watched.until(lambda: answers(watched) == [None, None, None])
        assert watched.sources.consistent


async def test_a_service_in_another_namespace_steers_nothing(autojump_clock: MockClock) -> None:
    api = make_cluster()
    metadata = {"name": "mine", "namespace": "shop", "annotations": {"switchback.dev/for": NGINX}}
    api.put("", "services", {"metadata": metadata, "spec": {"clusterIP": "10.96.6.6", "clusterIPs": ["10.96.6.6"]}})
    async with watching(api, AUTO, target="auto") as watched:
        await watched.until_ready()
        await trio.sleep(2)
        assert watched.at("app.example.org") is None


async def test_a_bad_annotation_is_noted_and_changes_nothing_for_others(autojump_clock: MockClock) -> None:
    api = make_cluster()
    put_route_service(api, "first", NGINX, *FIRST, created="2026-01-01T00:00:00Z")
    put_route_service(api, "bad", "nginx", *SECOND, created="2025-01-01T00:00:00Z")
    put_route_service(api, "late", NGINX, *SECOND, created="2026-06-01T00:00:00Z")
    async with watching(api, AUTO, target="auto") as watched:
        await watched.until_ready()
        assert watched.at("app.example.org") == FIRST
        assert set(watched.sources.faults) == {"own/bad", "own/late"}
        api.remove("", "services", "own/first")
        await watched.until_at("app.example.org", SECOND)
        assert set(watched.sources.faults) == {"own/bad"}


async def test_an_outage_takes_nothing_away_and_the_start_waits_for_the_services(autojump_clock: MockClock) -> None:
    api = make_cluster()
    put_route_service(api, "first", NGINX, *FIRST)
    path = "/api/v1/namespaces/own/services"
    api.faults[path] = failure(500, "Error")
    async with watching(api, AUTO, target="auto") as watched:
        await trio.sleep(10)
        assert STEERING in watched.waiting
        api.faults.clear()
        await watched.until_ready()
        assert watched.at("app.example.org") == FIRST
        api.crash()
        await trio.sleep(20)
        assert watched.at("app.example.org") == FIRST


async def test_what_was_steered_in_an_earlier_run_counts_until_the_services_were_read(
    autojump_clock: MockClock,
) -> None:
    api = make_cluster()
    put_route_service(api, "second", NGINX, *SECOND)

    def prepare(registry: Registry) -> None:
        registry.set_services({"own/first": FIRST})
        registry.set_steered({NGINX: "own/first"})

    api.crash()
    async with watching(api, AUTO, target="auto", prepare=prepare) as watched:
        await trio.sleep(10)
        assert watched.keeper.registry.targets.steered == {NGINX: "own/first"}
        assert watched.sources.services == {"own/first": FIRST}
        api.recover()
        await watched.until_at("app.example.org", SECOND)
        await watched.until(lambda: watched.sources.services == {"own/second": SECOND})


@pytest.mark.parametrize("target", ["192.0.2.7", "status"])
async def test_other_targets_ask_for_no_services(autojump_clock: MockClock, target: str) -> None:
    api = make_cluster()
    settings = ClusterSettings(ingress=IngressOptions())
    async with watching(api, settings, target=target) as watched:
        put_ingress(api, "more.example.org")
        await watched.until_ready()
        assert not any("/services" in one.path for one in api.asked)
