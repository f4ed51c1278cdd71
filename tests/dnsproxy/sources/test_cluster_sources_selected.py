"""The sources of a cluster with --namespace, --label-selector and --annotation-filter."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.rights import Annotations, Rights
from dnsproxy.sources.annotations import HOSTNAME
from dnsproxy.sources.gateway.kinds import GROUP
from dnsproxy.sources.ingress_source import SOURCE as INGRESS
from dnsproxy.sources.selection import Selection
from dnsproxy.sources.settings import ClusterSettings, GatewayOptions, IngressOptions, SourceOptions
from sidecar.kubernetes.selector import parse_annotation_selector, parse_selector
from tests.dnsproxy.sources.gateway.objects import gateway, listener, manifest, route
from tests.dnsproxy.sources.test_cluster_sources import RELAY, V1, Watched, watching
from tests.kit.faulty_api import Asked, failure
from tests.kit.live_api import LiveApi

RIGHTS: Final = Rights(Annotations.ALL)
TARGET: Final = RELAY[0]
KINDS: Final = ("app", "web", "git")
"""The first labels of names: of an Ingress, an HTTPRoute and a Service."""
CLUSTER_PATHS: Final = ("/apis/networking.k8s.io/v1/ingressclasses", "/api/v1/namespaces")
"""In no namespace."""
PATHS: Final = (
    "/apis/networking.k8s.io/v1/ingresses",
    "/api/v1/services",
    f"/apis/{V1}/gateways",
    f"/apis/{V1}/httproutes",
)
"""Of objects that name hosts."""


def settings(**selection: Any) -> ClusterSettings:
    return ClusterSettings(IngressOptions(), GatewayOptions(), services=True, selection=Selection(**selection))


def make_api() -> LiveApi:
    """An Ingress, an HTTPRoute with its Gateway, and a Service in each of the namespaces shop and blog."""
    api = LiveApi()
    api.provide("networking.k8s.io/v1", "ingresses", "ingressclasses")
    api.provide("v1", "namespaces", "services")
    api.provide(V1, "gateways", "httproutes")
    for namespace in ("shop", "blog"):
        put_all(api, namespace)
    return api


def put_all(api: LiveApi, namespace: str, **more: Any) -> None:
    """Each kind's name is `KIND.NAMESPACE.example.org`; `more`: of every object's metadata."""

    def with_more(item: Any) -> dict[str, Any]:
        metadata = {**item["metadata"], **more, "annotations": {**item["metadata"].get("annotations", {}), **added}}
        return {**item, "metadata": metadata}

    added = more.get("annotations", {})
    host = f"{namespace}.example.org"
    ingress = {"metadata": {"name": "app", "namespace": namespace}, "spec": {"rules": [{"host": f"app.{host}"}]}}
    api.put("networking.k8s.io", "ingresses", with_more(ingress))
    one = manifest(gateway(listener(f"*.{host}"), place=f"{namespace}/main"))
    api.put(GROUP, "gateways", with_more({**one, "metadata": {**one["metadata"], "annotations": {}}}))
    parent = {"name": "main"}
    web = manifest(route(f"web.{host}", place=f"{namespace}/web"))
    spec = {**web["spec"], "parentRefs": [parent]}
    api.put(GROUP, "httproutes", with_more({"metadata": {**web["metadata"], "annotations": {}}, "spec": spec}))
    metadata = {"name": "git", "namespace": namespace, "annotations": {HOSTNAME: f"git.{host}"}}
    api.put("", "services", with_more({"metadata": metadata, "spec": {}}))


def answered(watched: Watched, namespace: str) -> set[str]:
    return {kind for kind in KINDS if watched.at(f"{kind}.{namespace}.example.org")}


def objects_asked(api: LiveApi) -> list[Asked]:
    """The lists and watches: discovery is about versions alone."""
    return [one for one in api.asked if not re.fullmatch("/apis/[^/]+/[^/]+", one.path)]


async def test_without_a_selection_the_requests_are_one_list_and_one_watch_for_each_kind(
    autojump_clock: MockClock,
) -> None:
    api = make_api()
    async with watching(api, settings(), target=TARGET, rights=RIGHTS) as watched:
        await watched.until_ready()
        await watched.until(lambda: all(one.watches for one in watched.sources.statuses))
        assert answered(watched, "shop") == answered(watched, "blog") == set(KINDS)
    asked = Counter((one.path, one.is_watch) for one in objects_asked(api))
    assert asked == Counter((path, is_watch) for path in (*PATHS, *CLUSTER_PATHS) for is_watch in (False, True))
    assert not [one for one in api.asked if "labelSelector" in one.params]


async def test_only_the_namespaces_that_are_named_are_read(autojump_clock: MockClock) -> None:
    api = make_api()
    api.faults |= dict.fromkeys((*PATHS, *CLUSTER_PATHS), failure(403, "Forbidden"))
    async with watching(api, settings(namespaces=("shop", "wiki")), target=TARGET, rights=RIGHTS) as watched:
        await watched.until_ready()
        assert (answered(watched, "shop"), answered(watched, "blog")) == (set(KINDS), set())
        await watched.until(lambda: watched.sources.consistent)
        assert watched.sources.unread == []
        kinds = [status.kind for status in watched.sources.statuses]
        assert len(kinds) == len(set(kinds)), "two followers of one kind would be one series of the metrics"
        put_all(api, "wiki")
        await watched.until(lambda: answered(watched, "wiki") == set(KINDS))
        put_all(api, "blog")
        await trio.sleep(1)
        assert answered(watched, "blog") == set()
        api.remove("networking.k8s.io", "ingresses", "wiki/app")
        await watched.until(lambda: answered(watched, "wiki") == {"web", "git"})
    assert not [one for one in api.asked if "/namespaces/blog/" in one.path]


async def test_a_namespace_that_is_forbidden_is_named_and_the_others_are_answered(autojump_clock: MockClock) -> None:
    api = make_api()
    api.faults["/apis/networking.k8s.io/v1/namespaces/blog/ingresses"] = failure(403, "Forbidden")
    async with watching(api, settings(namespaces=("shop", "blog")), target=TARGET, rights=RIGHTS) as watched:
        await watched.until(lambda: watched.waiting == {INGRESS})
        await watched.until(lambda: answered(watched, "shop") == set(KINDS))
        assert watched.sources.unread == ["Ingress: namespace blog: 403: so it goes"]
        await trio.sleep(20)
        assert watched.waiting == {INGRESS}
        assert not watched.sources.consistent
        api.faults.clear()
        await watched.until_ready()
        assert answered(watched, "blog") == set(KINDS)
        assert watched.sources.unread == []


async def test_objects_come_and_go_with_their_labels(autojump_clock: MockClock) -> None:
    api = make_api()
    put_all(api, "shop", labels={"team": "web"})
    async with watching(api, settings(labels=parse_selector("team=web")), target=TARGET, rights=RIGHTS) as watched:
        await watched.until_ready()
        assert (answered(watched, "shop"), answered(watched, "blog")) == (set(KINDS), set())
        put_all(api, "blog", labels={"team": "web"})
        await watched.until(lambda: answered(watched, "blog") == set(KINDS))
        put_all(api, "shop", labels={"team": "api"})
        await watched.until(lambda: answered(watched, "shop") == set())
    assert {one.path: one.params.get("labelSelector") for one in objects_asked(api)} == {
        **dict.fromkeys(PATHS, "team=web"),
        **dict.fromkeys(CLUSTER_PATHS),
    }


async def test_objects_come_and_go_with_their_annotations(autojump_clock: MockClock) -> None:
    api = make_api()
    put_all(api, "shop", annotations={"example.org/public": "yes/no"})
    chosen = settings(annotations=parse_annotation_selector("example.org/public=yes/no"))
    async with watching(api, chosen, target=TARGET, rights=RIGHTS) as watched:
        await watched.until_ready()
        assert (answered(watched, "shop"), answered(watched, "blog")) == (set(KINDS), set())
        objects = {status.kind: status.objects for status in watched.sources.statuses}
        assert (objects["Ingress"], objects["Service"], objects["Gateway"], objects["HTTPRoute"]) == (1, 1, 1, 1)
        put_all(api, "blog", annotations={"example.org/public": "yes/no"})
        await watched.until(lambda: answered(watched, "blog") == set(KINDS))
        put_all(api, "shop", annotations={"example.org/public": "no"})
        await watched.until(lambda: answered(watched, "shop") == set())


async def test_an_object_that_comes_back_is_read_with_both_selectors(autojump_clock: MockClock) -> None:
    """It was left out for its namespace's share, and is not selected any more, which no watch has reported yet."""
    api = make_api()
    both = {"labels": {"team": "web"}, "annotations": {"example.org/public": "yes"}}
    put_all(api, "shop", **both)
    chosen = replace(
        settings(labels=parse_selector("team=web"), annotations=parse_annotation_selector("example.org/public")),
        gateway=None,
    )
    limits = NameLimits(per_object=1, per_namespace=1, total=10)
    async with watching(api, chosen, target=TARGET, rights=RIGHTS, limits=limits) as watched:
        await watched.until_ready()
        await watched.until(lambda: answered(watched, "shop") == {"app"})
        shares = watched.keeper.registry.shares
        # From now on only reads of single objects succeed, and lists of Ingresses.
        api.faults["/api/v1/services"] = failure(500, "InternalError")
        api.crash()
        api.recover()
        await watched.until(lambda: any(one.error for one in watched.sources.statuses))
        put_all(api, "shop", labels={"team": "web"})
        await watched.until(lambda: answered(watched, "shop") == set())
        await watched.until(lambda: not shares.is_wanted("Service", "shop/git"))
        await trio.sleep(1)
        assert answered(watched, "shop") == set()
    reads = [one.params for one in api.asked if one.path == "/api/v1/namespaces/shop/services"]
    assert reads
    assert {one["labelSelector"] for one in reads} == {"team=web"}


@pytest.mark.parametrize(
    ("namespaces", "is_read"), [pytest.param((), True, id="all"), pytest.param(("shop",), False, id="one is chosen")]
)
async def test_a_kind_in_no_namespace_is_off_where_namespaces_are_chosen(
    autojump_clock: MockClock, namespaces: tuple[str, ...], is_read: bool
) -> None:
    """It holds up no other kind, and the server is ready without it."""
    api = make_api()
    api.cluster_wide |= {"sites"}
    api.provide("example.net/v1", "sites")
    api.put("example.net", "sites", {"metadata": {"name": "a"}, "spec": {"host": "site.example.org"}})
    chosen = settings(namespaces=namespaces)
    chosen = replace(chosen, others=(SourceOptions("crd:sites.example.net:spec.host"),))
    async with watching(api, chosen, target=TARGET, rights=RIGHTS) as watched:
        await watched.until_ready()
        assert answered(watched, "shop") == set(KINDS)
        assert (watched.at("site.example.org") is not None) is is_read
        await watched.until(lambda: watched.sources.consistent)
