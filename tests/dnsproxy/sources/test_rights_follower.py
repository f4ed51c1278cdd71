"""Rights in a living cluster: from the first sync on, through labels that come and go, outages and restarts."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.rights import LABEL, Annotations, Rights
from dnsproxy.sources.annotations import HOSTNAME, TARGET
from dnsproxy.sources.cluster_sources import RIGHTS, ClusterSources
from dnsproxy.sources.ingress_nginx import ALIAS
from dnsproxy.sources.settings import ClusterSettings, GatewayOptions, IngressOptions
from tests.dnsproxy.sources.test_cluster_sources import Watched
from tests.dnsproxy.sources.test_cluster_sources import watching as watching_sources
from tests.kit.faulty_api import failure
from tests.kit.live_api import LiveApi
from tests.kit.messages import addresses_of

RELAY: Final = ("192.0.2.10",)
OWN: Final = ("10.96.7.7",)
NAMESPACES, CLASSES = "/api/v1/namespaces", "/apis/networking.k8s.io/v1/ingressclasses"
INGRESS: Final = ClusterSettings(ingress=IngressOptions())


def make_api() -> LiveApi:
    """A plain Ingress, one with an added hostname, one with a target of its own, and one of an unknown class."""
    api = LiveApi()
    api.provide("networking.k8s.io/v1", "ingresses", "ingressclasses")
    api.provide("v1", "namespaces", "services")
    api.provide("discovery.k8s.io/v1", "endpointslices")
    api.put("networking.k8s.io", "ingressclasses", {"metadata": {"name": "nginx"}, "spec": {}})
    label_namespace(api, "shop")
    label_namespace(api, "other", "allowed")
    put_ingress(api, "plain", ingress_class="nginx")
    put_ingress(api, "more", **{HOSTNAME: "added.example.org"})
    put_ingress(api, "own", **{TARGET: "service:shop/own"})
    put_ingress(api, "unserved", ingress_class="nosuchclass")
    api.put("", "services", {"metadata": {"name": "own", "namespace": "shop"}, "spec": {"clusterIP": OWN[0]}})
    return api


def put_ingress(api: LiveApi, name: str, *, ingress_class: str | None = None, **annotations: str) -> None:
    metadata = {"name": name, "namespace": "shop", "annotations": annotations}
    spec = {"ingressClassName": ingress_class, "rules": [{"host": f"{name}.example.org"}]}
    api.put("networking.k8s.io", "ingresses", {"metadata": metadata, "spec": spec})


def label_namespace(api: LiveApi, name: str, value: str | None = None) -> None:
    labels = {LABEL: value} if value is not None else {"kubernetes.io/metadata.name": name}
    api.put("", "namespaces", {"metadata": {"name": name, "labels": labels}})


def watching(
    api: LiveApi,
    settings: ClusterSettings = INGRESS,
    *,
    rights: Rights = Rights(),  # noqa: B008  # a frozen value
    prepare: Callable[[Registry], object] = lambda _: None,
) -> AbstractAsyncContextManager[Watched]:
    return watching_sources(api, settings, target=RELAY[0], rights=rights, prepare=prepare)


async def test_without_the_label_plain_names_alone_are_answered(autojump_clock: MockClock) -> None:
    async with watching(make_api()) as watched:
        await watched.until_ready()
        assert watched.at("plain.example.org") == watched.at("more.example.org") == RELAY
        for name in ("added", "own", "unserved"):
            assert watched.at(f"{name}.example.org") is None
        await watched.until(lambda: watched.sources.consistent)
        # Nobody's Service is followed because an annotation without the right names it.
        assert watched.sources.services == {}
        assert not watched.sources.faults
        reasons = "\n".join(one.reason for one in watched.keeper.registry.outcomes.excluded())
        for text in ("a hostname by annotation or alias does not", "a target of its own does not", "'nosuchclass'"):
            assert text in reasons


async def test_a_label_that_comes_and_goes_moves_the_names_of_its_namespace_alone(autojump_clock: MockClock) -> None:
    api = make_api()
    async with watching(api) as watched:
        await watched.until_ready()
        registry, touched = watched.keeper.registry, set[str]()
        touch = registry.touch

        def note(hostnames: Any) -> None:
            touched.update(hostnames)
            touch(hostnames)

        registry.touch = note  # type: ignore[method-assign]
        label_namespace(api, "shop", "allowed")
        await watched.until_at("added.example.org", RELAY)
        await watched.until_at("own.example.org", OWN)
        assert touched == {"added.example.org", "own.example.org"}
        label_namespace(api, "shop")
        await watched.until_at("added.example.org", None)
        await watched.until_at("own.example.org", None)
        await watched.until(lambda: not watched.sources.services)
        assert touched == {"added.example.org", "own.example.org"}
        label_namespace(api, "shop", "allowed")
        await watched.until_at("own.example.org", OWN)
        api.remove("", "namespaces", "shop")
        await watched.until_at("own.example.org", None)
        assert watched.at("plain.example.org") == RELAY


async def test_a_server_alias_counts_while_its_class_is_of_ingress_nginx(autojump_clock: MockClock) -> None:
    api = make_api()
    put_ingress(api, "aliased", ingress_class="nginx", **{ALIAS: "alias.example.org"})
    async with watching(api) as watched:
        await watched.until_ready()
        assert watched.at("aliased.example.org") == RELAY
        assert watched.at("alias.example.org") is None
        for controller, answer in (("k8s.io/ingress-nginx", RELAY), ("example.org/other", None)):
            ingress_class = {"metadata": {"name": "nginx"}, "spec": {"controller": controller}}
            api.put("networking.k8s.io", "ingressclasses", ingress_class)
            await watched.until_at("alias.example.org", answer)
            assert watched.at("aliased.example.org") == RELAY


@pytest.mark.parametrize("value", ["", "Allowed", "true", "allowed.", "denied"])
async def test_no_other_value_of_the_label_gives_the_right(autojump_clock: MockClock, value: str) -> None:
    api = make_api()
    label_namespace(api, "shop", value)
    async with watching(api) as watched:
        await watched.until_ready()
        await watched.until(lambda: watched.sources.consistent)
        assert watched.at("added.example.org") is None


async def test_a_class_that_is_installed_later_brings_its_names_along(autojump_clock: MockClock) -> None:
    api = make_api()
    async with watching(api) as watched:
        await watched.until_ready()
        assert watched.at("unserved.example.org") is None
        api.put("networking.k8s.io", "ingressclasses", {"metadata": {"name": "nosuchclass"}, "spec": {}})
        await watched.until_at("unserved.example.org", RELAY)
        api.remove("networking.k8s.io", "ingressclasses", "nosuchclass")
        await watched.until_at("unserved.example.org", None)
        assert watched.at("plain.example.org") == RELAY


async def test_a_cluster_without_ingress_classes_is_answered(autojump_clock: MockClock) -> None:
    api = make_api()
    api.remove("networking.k8s.io", "ingressclasses", "nginx")
    async with watching(api) as watched:
        await watched.until_ready()
        assert watched.at("unserved.example.org") == watched.at("plain.example.org") == RELAY


@pytest.mark.parametrize(
    ("annotations", "asks"),
    [
        pytest.param(Annotations.LABELLED, True, id="labelled"),
        pytest.param(Annotations.ALL, False, id="all"),
        pytest.param(Annotations.OFF, False, id="off"),
    ],
)
async def test_namespaces_are_read_only_if_they_matter(
    autojump_clock: MockClock, annotations: Annotations, asks: bool
) -> None:
    api = make_api()
    async with watching(api, rights=Rights(annotations)) as watched:
        await watched.until_ready()
        await watched.until(lambda: watched.sources.consistent)
        assert bool(api.asked_for(NAMESPACES)) is asks
        assert watched.at("added.example.org") == (RELAY if annotations is Annotations.ALL else None)
    asked = [one.params for one in api.asked if one.path == NAMESPACES]
    assert all(params["labelSelector"] == f"{LABEL}=allowed" for params in asked)


@pytest.mark.parametrize(
    ("settings", "annotations", "waits"),
    [
        pytest.param(INGRESS, Annotations.OFF, True, id="for classes"),
        pytest.param(ClusterSettings(gateway=GatewayOptions()), Annotations.LABELLED, True, id="for namespaces"),
        pytest.param(ClusterSettings(services=True), Annotations.ALL, False, id="for nothing"),
    ],
)
def test_the_first_sync_waits_for_what_gives_rights(
    settings: ClusterSettings, annotations: Annotations, waits: bool
) -> None:
    assert (RIGHTS in ClusterSources.reports(settings, Rights(annotations))) is waits


@pytest.mark.parametrize("path", [NAMESPACES, CLASSES])
async def test_a_server_is_not_ready_before_it_has_read_them(autojump_clock: MockClock, path: str) -> None:
    api = make_api()
    label_namespace(api, "shop", "allowed")
    api.faults[path] = failure(500, "InternalError")
    async with watching(api) as watched:
        await watched.until(lambda: RIGHTS in watched.waiting and len(watched.waiting) <= 2)
        await trio.sleep(20)
        assert RIGHTS in watched.waiting
        assert not watched.sources.consistent
        assert watched.at("more.example.org") == RELAY
        assert watched.at("plain.example.org") == (RELAY if path == NAMESPACES else None)
        api.faults.clear()
        await watched.until(lambda: RIGHTS not in watched.waiting)
        # In the same table: nothing is missing for a moment in a server that is ready.
        for name in ("plain", "added", "own"):
            assert watched.at(f"{name}.example.org") is not None


async def test_rights_that_rbac_hides_are_none_and_do_not_hold_up_readiness(autojump_clock: MockClock) -> None:
    api = make_api()
    label_namespace(api, "shop", "allowed")
    api.faults[NAMESPACES] = api.faults[CLASSES] = failure(403, "Forbidden")
    async with watching(api) as watched:
        await watched.until_ready()
        assert watched.at("plain.example.org") == watched.at("more.example.org") == RELAY
        assert watched.at("added.example.org") is None


@pytest.mark.parametrize(
    ("hidden", "annotations", "warned"),
    [
        pytest.param(True, Annotations.LABELLED, True, id="hidden"),
        pytest.param(True, Annotations.ALL, False, id="hidden, and not needed"),
        pytest.param(False, Annotations.LABELLED, False, id="read"),
    ],
)
async def test_hidden_namespaces_are_warned_of_once_with_the_flag_that_needs_none(
    autojump_clock: MockClock, hidden: bool, annotations: Annotations, warned: bool
) -> None:
    api = make_api()
    if hidden:
        api.faults[NAMESPACES] = failure(403, "Forbidden")
    with capture_logs() as logs:
        async with watching(api, rights=Rights(annotations)) as watched:
            await watched.until_ready()
            await trio.sleep(40)
    found = [one for one in logs if "--annotations all" in one["event"]]
    assert [one["log_level"] for one in found] == ["warning"] * warned


async def test_namespaces_that_were_read_before_they_were_hidden_are_not_warned_of(autojump_clock: MockClock) -> None:
    api = make_api()
    label_namespace(api, "shop", "allowed")
    with capture_logs() as logs:
        async with watching(api) as watched:
            await watched.until_at("added.example.org", RELAY)
            api.faults[NAMESPACES] = failure(403, "Forbidden")
            await watched.until(lambda: any(one.error for one in watched.sources.statuses))
            assert watched.at("added.example.org") == RELAY
    assert not [one for one in logs if "--annotations all" in one["event"]]


def restore(registry: Registry) -> None:
    """A snapshot with the rights of then."""
    registry.set_services({"shop/own": OWN})
    registry.set_rights(namespaces=frozenset({"shop", "gone"}), classes=frozenset({"nginx"}))
    restored: tuple[tuple[str, dict[str, Any]], ...] = (
        ("plain", {"ingress_class": "nginx"}),
        ("unserved", {"ingress_class": "nosuchclass"}),
        ("more", {}),
        ("own", {"target": "service:shop/own"}),
    )
    for name, more in restored:
        claims = [Claim(f"{name}.example.org", Reach.NAME, Origin("Ingress", name, "shop"), Terms(**more))]
        if name == "more":
            claims.append(
                Claim("added.example.org", Reach.NAME, Origin("Ingress", name, "shop"), Terms(annotated=True))
            )
        registry.touch(registry.shares.restore("Ingress", f"shop/{name}", claims))


async def test_a_restart_without_the_api_server_answers_as_before(autojump_clock: MockClock) -> None:
    api = make_api()
    label_namespace(api, "shop", "allowed")
    api.crash()
    async with watching(api, prepare=restore) as watched:
        await trio.sleep(20)
        assert RIGHTS in watched.waiting
        answered = {"plain": RELAY, "more": RELAY, "added": RELAY, "own": OWN, "unserved": None}
        assert {name: watched.at(f"{name}.example.org") for name in answered} == answered
        del watched.tables[:-1]
        api.recover()
        await watched.until_ready()
        await watched.until(lambda: watched.sources.consistent)
        assert {name: watched.at(f"{name}.example.org") for name in answered} == answered
        for table in watched.tables:
            assert {name: addresses_of(table, f"{name}.example.org") for name in answered} == answered
        assert watched.keeper.registry.rights == Rights(
            namespaces=frozenset({"shop", "other"}), classes=frozenset({"nginx"}), nginx_classes=frozenset()
        )


async def test_a_right_that_ended_in_between_ends_with_the_first_sync(autojump_clock: MockClock) -> None:
    async with watching(make_api(), prepare=restore) as watched:
        await watched.until_ready()
        assert watched.at("added.example.org") is watched.at("own.example.org") is None
        assert watched.at("plain.example.org") == RELAY


async def test_an_outage_takes_no_right_away(autojump_clock: MockClock) -> None:
    api = make_api()
    label_namespace(api, "shop", "allowed")
    async with watching(api) as watched:
        await watched.until_ready()
        await watched.until_at("own.example.org", OWN)
        api.crash()
        await trio.sleep(20)
        assert watched.at("own.example.org") == OWN
        assert watched.at("added.example.org") == watched.at("plain.example.org") == RELAY
