"""external-dns' annotations and DNSEndpoints among all watches of one cluster, with rights and aliases."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from trio.testing import MockClock

from dnsproxy.hostnames.rights import Annotations, Rights, parse_network
from dnsproxy.sources.names import DNS_ENDPOINT, EXTERNAL_DNS
from dnsproxy.sources.settings import ClusterSettings, SourceOptions
from tests.dnsproxy.sources.external_dns.objects import HOSTNAME, endpoint, record
from tests.dnsproxy.sources.test_cluster_sources import ALL, RELAY, make_api, put_ingress, watching
from tests.kit.live_api import LiveApi

GROUP: Final = "externaldns.k8s.io"
SETTINGS: Final = replace(ALL, others=(SourceOptions(EXTERNAL_DNS), SourceOptions(DNS_ENDPOINT)))
ALONE: Final = ClusterSettings(others=(SourceOptions(EXTERNAL_DNS),))
EVERYWHERE: Final = Rights(Annotations.ALL, (parse_network("192.0.2.0/24"),))
DB: Final = "db.example.org"


def make_cluster(*, crd: bool = True) -> LiveApi:
    api = make_api()
    if crd:
        api.provide(f"{GROUP}/v1alpha1", "dnsendpoints")
    return api


def put_endpoints(api: LiveApi, *endpoints: Any, name: str = "records") -> None:
    metadata = {"name": name, "namespace": "shop"}
    api.put(GROUP, "dnsendpoints", {"metadata": metadata, "spec": {"endpoints": list(endpoints)}})


def put_headless(api: LiveApi, *endpoints: Any) -> None:
    metadata = {"name": "db", "namespace": "shop"}
    api.put("", "services", {"metadata": metadata | {"annotations": {HOSTNAME: DB}}, "spec": {"clusterIP": "None"}})
    labels = {"kubernetes.io/service-name": "db", "service.kubernetes.io/headless": ""}
    part = {"metadata": metadata | {"labels": labels}, "addressType": "IPv4", "endpoints": list(endpoints)}
    api.put("discovery.k8s.io", "endpointslices", part)


async def test_pods_of_a_headless_service_are_answered_and_followed(autojump_clock: MockClock) -> None:
    api = make_cluster()
    put_headless(api, endpoint("10.244.0.7", "db-0"))
    async with watching(api, SETTINGS, rights=EVERYWHERE) as watched:
        await watched.until_ready()
        assert (watched.at(DB), watched.at(f"db-0.{DB}")) == (("10.244.0.7",), ("10.244.0.7",))
        assert watched.sources.consistent
        put_headless(api, endpoint("10.244.0.8", "db-1"))
        await watched.until_at(DB, ("10.244.0.8",))
        await watched.until_at(f"db-0.{DB}", None)
        put_headless(api)
        await watched.until_at(DB, None)


@pytest.mark.parametrize(
    ("rights", "pods", "addresses"),
    [
        pytest.param(Rights(Annotations.OFF), None, None, id="no annotation counts"),
        pytest.param(Rights(Annotations.LABELLED), None, None, id="a namespace without the label"),
        pytest.param(Rights(Annotations.ALL), ("10.244.0.7",), None, id="no network"),
        pytest.param(EVERYWHERE, ("10.244.0.7",), ("192.0.2.1",), id="within the network"),
    ],
)
async def test_own_addresses_need_the_right_and_chosen_ones_the_network_too(
    autojump_clock: MockClock, rights: Rights, pods: Any, addresses: Any
) -> None:
    api = make_cluster()
    put_headless(api, endpoint("10.244.0.7"))
    put_endpoints(api, record("a.example.org", "A", "192.0.2.1"), record("b.example.org", "A", "198.51.100.1"))
    async with watching(api, SETTINGS, rights=rights) as watched:
        await watched.until_ready()
        await watched.until(lambda: watched.at("app.example.org") == RELAY)
        assert [watched.at(name) for name in (DB, "a.example.org", "b.example.org")] == [pods, addresses, None]


def put_annotated_ingress(api: LiveApi, class_name: str) -> None:
    metadata = {"name": "annotated", "namespace": "shop", "annotations": {HOSTNAME: "annotated.example.org"}}
    api.put("networking.k8s.io", "ingresses", {"metadata": metadata, "spec": {"ingressClassName": class_name}})


@pytest.mark.parametrize("settings", [SETTINGS, ALONE], ids=["beside Ingresses", "alone"])
async def test_a_class_counts_once_there_is_one_of_its_name(
    autojump_clock: MockClock, settings: ClusterSettings
) -> None:
    """The controller of an Ingress may write no status."""
    api = make_cluster()
    api.put("networking.k8s.io", "ingressclasses", {"metadata": {"name": "nginx"}})
    put_annotated_ingress(api, "nginx")
    async with watching(api, settings, rights=EVERYWHERE) as watched:
        await watched.until_ready()
        assert watched.at("annotated.example.org") == RELAY
        assert watched.sources.consistent
        put_annotated_ingress(api, "internal")
        await watched.until_at("annotated.example.org", None)
        api.put("networking.k8s.io", "ingressclasses", {"metadata": {"name": "internal"}})
        await watched.until_at("annotated.example.org", RELAY)


async def test_in_a_cluster_without_classes_any_counts(autojump_clock: MockClock) -> None:
    api = make_cluster()
    put_annotated_ingress(api, "nginx")
    async with watching(api, ALONE, rights=EVERYWHERE) as watched:
        await watched.until_ready()
        assert watched.at("annotated.example.org") == RELAY


async def test_an_alias_follows_the_table_and_is_forwarded_without_a_row(autojump_clock: MockClock) -> None:
    api = make_cluster()
    put_endpoints(api, record(DB, "CNAME", "www.example.org"), record("www.example.org", "CNAME", "shop.example.org"))
    async with watching(api, SETTINGS, rights=EVERYWHERE) as watched:
        await watched.until_ready()
        store = watched.keeper.registry.store
        (one,) = store.rejections()
        assert (watched.at(DB), watched.at("www.example.org"), one.deliberate) == (None, None, True)
        assert one.reason.startswith(f"{DB} -> shop.example.org, www.example.org -> shop.example.org: ")
        put_ingress(api, "shop.example.org")
        await watched.until_at(DB, RELAY)
        await watched.until_at("www.example.org", RELAY)
        assert not list(store.rejections())
        api.remove("networking.k8s.io", "ingresses", "shop/shop")
        await watched.until_at(DB, None)
        await watched.until_at("www.example.org", None)
        assert list(store.rejections()) == [one]


async def test_the_definition_of_dnsendpoint_may_come_and_go(autojump_clock: MockClock) -> None:
    api = make_cluster(crd=False)
    put_endpoints(api, record(DB, "A", "192.0.2.1"))
    async with watching(api, SETTINGS, rights=EVERYWHERE) as watched:
        await watched.until_ready()
        assert (watched.at(DB), watched.at("app.example.org")) == (None, RELAY)
        api.provide(f"{GROUP}/v1alpha1", "dnsendpoints")
        await watched.until_at(DB, ("192.0.2.1",))
        api.withdraw(f"{GROUP}/v1alpha1", "dnsendpoints")
        await watched.until_at(DB, None)
        assert watched.at("app.example.org") == RELAY


async def test_a_loop_and_a_broken_object_harm_no_other(autojump_clock: MockClock) -> None:
    api = make_cluster()
    put_endpoints(api, record("x.org", "CNAME", "y.org"), record("y.org", "CNAME", "x.org"), name="loop")
    put_endpoints(api, {"dnsName": 1}, name="broken")
    put_endpoints(api, record(DB, "A", "192.0.2.1"))
    async with watching(api, SETTINGS, rights=EVERYWHERE) as watched:
        await watched.until_ready()
        await watched.until_at(DB, ("192.0.2.1",))
        reasons = sorted(one.reason for one in watched.keeper.registry.store.rejections())
        assert [one.partition(":")[0] for one in reasons] == ["unreadable", "x.org", "y.org"]


def test_the_sources_have_their_place_in_the_settings_of_a_snapshot() -> None:
    settings = ClusterSettings(others=(SourceOptions(DNS_ENDPOINT),)).snapshot_settings("https://192.0.2.1")
    assert "dnsendpoint" in settings["sources"]
