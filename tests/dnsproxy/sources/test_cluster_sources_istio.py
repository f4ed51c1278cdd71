"""Istio's Gateways and VirtualServices among all watches of one cluster."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from trio.testing import MockClock

from dnsproxy.sources.istio.kinds import GROUP
from dnsproxy.sources.names import ISTIO
from dnsproxy.sources.settings import SourceOptions
from tests.dnsproxy.sources.test_cluster_sources import ALL, RELAY, make_api, watching
from tests.kit.live_api import LiveApi

SETTINGS: Final = replace(ALL, others=(SourceOptions(ISTIO),))
CLASS: Final = "istio=ingressgateway"
BOTH: Final = ("gateways", "virtualservices")
NAMES: Final = ("a.example.org", "b.example.org")


def make_cluster(*versions: str) -> LiveApi:
    api = make_api()
    for version in versions:
        api.provide(f"{GROUP}/{version}", *BOTH)
    put_gateway(api, "a.example.org", "*.example.org")
    put_service(api, "b.example.org")
    return api


def put_gateway(api: LiveApi, *hosts: Any, selector: str = "ingressgateway") -> None:
    """Beside the Gateways of the Gateway API, which have the same resource in another group."""
    spec = {"selector": {"istio": selector}, "servers": [{"hosts": list(hosts)}]}
    api.put(GROUP, "gateways", {"metadata": {"name": "main", "namespace": "infra"}, "spec": spec})


def put_service(api: LiveApi, *hosts: Any, name: str = "app") -> None:
    spec = {"hosts": list(hosts), "gateways": ["infra/main"]}
    api.put(GROUP, "virtualservices", {"metadata": {"name": name, "namespace": "web"}, "spec": spec})


async def test_names_come_change_and_go(autojump_clock: MockClock) -> None:
    api = make_cluster("v1")
    async with watching(api, SETTINGS) as watched:
        await watched.until_ready()
        assert [watched.at(name) for name in NAMES] == [RELAY, RELAY]
        assert watched.sources.consistent
        put_service(api, "c.example.org")
        await watched.until_at("c.example.org", RELAY)
        await watched.until_at("b.example.org", None)
        put_gateway(api, "*.example.net")
        await watched.until_at("c.example.org", None)
        assert watched.at("app.example.org") == RELAY


async def test_the_definitions_may_come_change_their_version_and_go(autojump_clock: MockClock) -> None:
    api = make_cluster()
    async with watching(api, SETTINGS) as watched:
        await watched.until_ready()
        assert [watched.at(name) for name in NAMES] == [None, None]
        api.provide(f"{GROUP}/v1beta1", *BOTH)
        for name in NAMES:
            await watched.until_at(name, RELAY)
        api.provide(f"{GROUP}/v1", *BOTH)
        api.withdraw(f"{GROUP}/v1beta1", *BOTH)
        put_service(api, "c.example.org")
        await watched.until_at("c.example.org", RELAY)
        api.withdraw(f"{GROUP}/v1", *BOTH)
        await watched.until_at("c.example.org", None)
        await watched.until_at("a.example.org", None)
        assert watched.at("app.example.org") == RELAY


@pytest.mark.parametrize(
    ("wanted", "answer"), [(CLASS, RELAY), ("istio=other", None)], ids=["the class", "another class"]
)
async def test_only_gateways_of_a_class_count(autojump_clock: MockClock, wanted: str, answer: Any) -> None:
    settings = replace(ALL, others=(SourceOptions(ISTIO, frozenset({wanted})),))
    async with watching(make_cluster("v1"), settings) as watched:
        await watched.until_ready()
        assert [watched.at(name) for name in NAMES] == [answer, answer]


async def test_broken_objects_harm_no_other(autojump_clock: MockClock) -> None:
    api = make_cluster("v1")
    put_service(api, {"host": 1}, name="broken")
    put_service(api, *(f"h{number}.example.org" for number in range(5_000)), name="huge")
    async with watching(api, SETTINGS) as watched:
        await watched.until_ready()
        assert [watched.at(name) for name in NAMES] == [RELAY, RELAY]
        assert (watched.at("h999.example.org"), watched.at("h1000.example.org")) == (RELAY, None)
        reasons = sorted(one.reason for one in watched.keeper.registry.store.rejections())
        assert [one[:19] for one in reasons] == ["it claims more than", "unreadable: Expecte"]
