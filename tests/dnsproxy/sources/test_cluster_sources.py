"""All watches of one cluster feed one table: what readiness waits for, and which faults affect nothing else."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.answers.table import HostTable
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.annotations import HOSTNAME, TARGET
from dnsproxy.sources.cluster_sources import TARGETS, ClusterSources
from dnsproxy.sources.gateway.kinds import GROUP
from dnsproxy.sources.ingress_source import SOURCE as INGRESS
from dnsproxy.sources.service_source import SOURCE as SERVICE
from dnsproxy.sources.settings import ClusterSettings, GatewayOptions, IngressOptions
from dnsproxy.sources.source_followers import GATEWAY
from tests.dnsproxy.sources.gateway.objects import gateway, listener, manifest, route
from tests.kit.faulty_api import client_in_memory, failure
from tests.kit.live_api import LiveApi
from tests.kit.messages import addresses_of

V1: Final = f"{GROUP}/v1"
RELAY: Final = ("10.96.0.1",)
ALL: Final = ClusterSettings(ingress=IngressOptions(), gateway=GatewayOptions(), services=True)
INGRESSES, ROUTES = "/apis/networking.k8s.io/v1/ingresses", f"/apis/{V1}/httproutes"
RELAYS, OTHERS = "/api/v1/namespaces/edge/services", "/api/v1/namespaces/shop/services"


def make_api() -> LiveApi:
    """Ingress app, HTTPRoute web, Service git, and their target Service."""
    api = LiveApi()
    api.provide("networking.k8s.io/v1", "ingresses", "ingressclasses")
    api.provide("v1", "namespaces", "services")
    api.provide("discovery.k8s.io/v1", "endpointslices")
    provide_crds(api)
    put_ingress(api, "app.example.org")
    put_service(api, "edge/relay", *RELAY)
    put_service(api, "shop/git", "10.96.0.8", **{HOSTNAME: "git.example.org"})
    return api


def provide_crds(api: LiveApi) -> None:
    api.provide(V1, "gateways", "httproutes")
    api.put(GROUP, "gateways", manifest(gateway(listener("*.example.org"))))
    put_route(api, "web.example.org")


def put_ingress(api: LiveApi, hostname: str) -> None:
    metadata = {"name": hostname.partition(".")[0], "namespace": "shop"}
    api.put("networking.k8s.io", "ingresses", {"metadata": metadata, "spec": {"rules": [{"host": hostname}]}})


def put_route(api: LiveApi, hostname: str, **annotations: str) -> None:
    one = route(hostname, place=f"web/{hostname.partition('.')[0]}")
    item = manifest(one)
    api.put(GROUP, "httproutes", {**item, "metadata": {**item["metadata"], "annotations": annotations}})


def put_service(api: LiveApi, key: str, *addresses: str, **annotations: str) -> None:
    namespace, _, name = key.partition("/")
    spec = {"clusterIP": addresses[0], "clusterIPs": list(addresses)}
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    api.put("", "services", {"metadata": metadata, "spec": spec})


def put_relay(api: LiveApi, *, ready: bool) -> None:
    ports, metadata = [{"name": "https", "port": 443}], {"name": "relay", "namespace": "edge"}
    spec = {"clusterIP": RELAY[0], "clusterIPs": list(RELAY), "ports": ports}
    api.put("", "services", {"metadata": metadata, "spec": spec})
    part = {"metadata": {**metadata, "labels": {"kubernetes.io/service-name": "relay"}}, "addressType": "IPv4"}
    endpoints = [{"addresses": ["192.0.2.7"], "conditions": {"ready": ready}}]
    api.put("discovery.k8s.io", "endpointslices", {**part, "ports": ports, "endpoints": endpoints})


@dataclass
class Watched:
    sources: ClusterSources
    keeper: TableKeeper
    tables: list[HostTable]

    @property
    def waiting(self) -> set[str]:
        return set(self.keeper.waiting_for)

    def at(self, hostname: str) -> tuple[str, ...] | None:
        return addresses_of(self.tables[-1], hostname)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
            await trio.sleep(0.1)

    async def until_at(self, hostname: str, addresses: tuple[str, ...] | None) -> None:
        await self.until(lambda: self.at(hostname) == addresses)

    async def until_ready(self) -> None:
        await self.until(lambda: not self.keeper.waiting_for)


@asynccontextmanager
async def watching(
    api: LiveApi,
    settings: ClusterSettings = ALL,
    *,
    target: str = "service:edge/relay",
    rights: Rights | None = None,
    prepare: Callable[[Registry], object] = lambda _: None,
    limits: NameLimits | None = None,
) -> AsyncIterator[Watched]:
    tables: list[HostTable] = []
    registry = Registry(targets=Targets((target,)), guards=Guards(), rights=rights, limits=limits)
    prepare(registry)
    keeper = TableKeeper(registry, ttl=5, publish=tables.append, sources=ClusterSources.reports(settings, rights))
    await keeper.swap()
    sources = ClusterSources(settings, keeper)
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        nursery.start_soon(sources.follow, client)
        yield Watched(sources, keeper, tables)
        nursery.cancel_scope.cancel()


async def test_every_source_and_the_service_of_the_target_come_to_one_table(autojump_clock: MockClock) -> None:
    async with watching(make_api()) as watched:
        await watched.until_ready()
        assert {watched.at(f"{name}.example.org") for name in ("app", "web", "git")} == {RELAY}
        assert watched.sources.consistent
        kinds = {status.kind for status in watched.sources.statuses}
        assert kinds == {
            "Ingress",
            "IngressClass",
            "Gateway",
            "HTTPRoute",
            "Namespace",
            "Service",
            "Service edge/relay",
            "EndpointSlices of edge/relay",
        }
        assert watched.sources.faults == {}
        assert watched.sources.services == {"edge/relay": RELAY}


@pytest.mark.parametrize(
    ("path", "waits_for"),
    [
        pytest.param(INGRESSES, INGRESS, id="Ingresses"),
        pytest.param("/apis/networking.k8s.io/v1/ingressclasses", INGRESS, id="IngressClasses"),
        pytest.param(f"/apis/{V1}", GATEWAY, id="discovery"),
        pytest.param(ROUTES, GATEWAY, id="HTTPRoutes"),
        pytest.param("/api/v1/namespaces", GATEWAY, id="Namespaces"),
        pytest.param("/api/v1/services", SERVICE, id="Services"),
        pytest.param(RELAYS, TARGETS, id="the target's Service"),
    ],
)
async def test_readiness_waits_for_each_and_the_others_are_answered_meanwhile(
    autojump_clock: MockClock, path: str, waits_for: str
) -> None:
    api = make_api()
    api.faults[path] = failure(500, "InternalError")
    async with watching(api) as watched:
        await watched.until(lambda: watched.waiting == {waits_for})
        await trio.sleep(20)
        assert watched.waiting == {waits_for}
        assert not watched.sources.consistent
        answered = {name for name in ("app.example.org", "web.example.org") if watched.at(name)}
        assert answered == {
            INGRESS: {"web.example.org"},
            GATEWAY: {"app.example.org"},
            SERVICE: {"app.example.org", "web.example.org"},
            TARGETS: set(),
        }[waits_for] | ({"app.example.org"} if path.endswith("ingressclasses") else set())
        api.faults.clear()
        await watched.until_ready()
        await watched.until_at("web.example.org", RELAY)
        await watched.until(lambda: watched.sources.consistent)


@pytest.mark.parametrize(
    ("settings", "reports"),
    [
        pytest.param(ClusterSettings(ingress=IngressOptions()), [INGRESS, TARGETS], id="Ingress alone"),
        pytest.param(ClusterSettings(gateway=GatewayOptions()), [GATEWAY, TARGETS], id="Gateway API alone"),
        pytest.param(ClusterSettings(services=True), [SERVICE, TARGETS], id="Services alone"),
        pytest.param(ALL, [INGRESS, GATEWAY, SERVICE, TARGETS], id="all"),
    ],
)
async def test_only_what_is_configured_is_waited_for_and_asked_for(
    autojump_clock: MockClock, settings: ClusterSettings, reports: list[str]
) -> None:
    assert ClusterSources.reports(settings) == reports
    api = make_api()
    async with watching(api, settings, target="192.0.2.10") as watched:
        await watched.until_ready()
        await trio.sleep(1)
        assert watched.at("app.example.org") == (("192.0.2.10",) if settings.ingress else None)
        assert watched.at("web.example.org") == (("192.0.2.10",) if settings.gateway else None)
        assert watched.at("git.example.org") == (("192.0.2.10",) if settings.services else None)
    paths = {one.path for one in api.asked}
    assert (INGRESSES in paths) == (settings.ingress is not None)
    assert (f"/apis/{V1}" in paths) == (settings.gateway is not None)
    assert {path for path in paths if "services" in path} == ({"/api/v1/services"} if settings.services else set())


async def test_crds_that_come_and_go_leave_ingress_names_unmoved(autojump_clock: MockClock) -> None:
    """K15: this source is off, on and off again."""
    api = make_api()
    api.remove(GROUP, "httproutes", "web/web")
    api.remove(GROUP, "gateways", "infra/main")
    api.withdraw(V1, "gateways", "httproutes")
    async with watching(api) as watched:
        await watched.until_ready()
        watched.tables.clear()
        provide_crds(api)
        await watched.until(lambda: bool(watched.tables))
        await watched.until_at("web.example.org", RELAY)
        api.withdraw(V1, "gateways", "httproutes")
        await watched.until_at("web.example.org", None)
        await watched.until(lambda: watched.sources.consistent)
        put_ingress(api, "late.example.org")
        await watched.until_at("late.example.org", RELAY)
        assert all(addresses_of(table, "app.example.org") == RELAY for table in watched.tables)
        assert not watched.waiting


async def test_a_relay_that_dies_costs_no_name_and_no_other_target(autojump_clock: MockClock) -> None:
    """Nor does the start: names of a relay that is not ready are no reason to wait."""
    api = make_api()
    put_relay(api, ready=False)
    async with watching(api) as watched:
        await watched.until_ready()
        put_route(api, "own.example.org", **{TARGET: "192.0.2.4"})
        await watched.until_at("own.example.org", ("192.0.2.4",))
        for ready in (True, False, True):
            assert watched.at("app.example.org") == (() if ready else RELAY)
            assert watched.sources.services == ({} if ready else {"edge/relay": RELAY})
            put_relay(api, ready=ready)
            await watched.until_at("app.example.org", RELAY if ready else ())
            assert watched.at("own.example.org") == ("192.0.2.4",)
            assert watched.sources.consistent
        api.crash()
        await trio.sleep(20)
        assert watched.at("app.example.org") == RELAY


async def test_a_service_that_moves_takes_every_name_along(autojump_clock: MockClock) -> None:
    api = make_api()
    async with watching(api) as watched:
        await watched.until_ready()
        api.remove("", "services", "edge/relay")
        await watched.until_at("app.example.org", None)
        assert watched.sources.faults == {"edge/relay": "there is no such Service"}
        put_service(api, "edge/relay", "10.96.0.2", "2001:db8::2")
        for name in ("app.example.org", "web.example.org"):
            await watched.until_at(name, ("10.96.0.2", "2001:db8::2"))
        assert watched.sources.faults == {}


def chosen(key: str) -> Mapping[str, str]:
    return {TARGET: f"service:{key}"}


async def test_a_service_that_an_object_chose_may_come_later_and_go_with_the_object(autojump_clock: MockClock) -> None:
    api = make_api()
    async with watching(api) as watched:
        await watched.until_ready()
        put_route(api, "own.example.org", **chosen("shop/own"))
        await watched.until(lambda: "shop/own" in watched.sources.faults)
        assert watched.at("own.example.org") is None
        put_service(api, "shop/own", "10.96.7.7")
        await watched.until_at("own.example.org", ("10.96.7.7",))
        assert watched.at("web.example.org") == RELAY
        put_service(api, "shop/own", "10.96.7.8")
        await watched.until_at("own.example.org", ("10.96.7.8",))
        api.remove(GROUP, "httproutes", "web/own")
        await watched.until_at("own.example.org", None)
        await watched.until(lambda: "shop/own" not in watched.sources.services)
        assert watched.sources.faults == {}


async def test_a_service_that_an_object_chose_holds_up_neither_readiness_nor_snapshots(
    autojump_clock: MockClock,
) -> None:
    """A tenant may name a Service that RBAC hides."""
    api = make_api()
    api.faults[OTHERS] = failure(403, "Forbidden")
    put_route(api, "own.example.org", **chosen("shop/own"))
    async with watching(api) as watched:
        await watched.until_ready()
        await watched.until(lambda: watched.sources.consistent)
        assert watched.at("own.example.org") is None
        assert watched.at("web.example.org") == RELAY


async def test_a_change_of_one_objects_service_judges_no_other_name_again(autojump_clock: MockClock) -> None:
    api = make_api()
    for number in range(50):
        put_ingress(api, f"h{number}.example.org")
    put_route(api, "own.example.org", **chosen("shop/own"))
    put_service(api, "shop/own", "10.96.7.7")
    async with watching(api) as watched:
        await watched.until_ready()
        await watched.until_at("own.example.org", ("10.96.7.7",))
        registry, touched = watched.keeper.registry, list[str]()
        touch = registry.touch

        def note(hostnames: Any) -> None:
            touched.extend(hostnames)
            touch(hostnames)

        registry.touch = note  # type: ignore[method-assign]
        put_service(api, "shop/own", "10.96.7.8")
        await watched.until_at("own.example.org", ("10.96.7.8",))
        assert touched == ["own.example.org"]


def claim_of(source: str, name: str, *, target: str | None = None) -> Claim:
    """A restored claim of an object in the namespace of its kind."""
    namespace = "shop" if source == "Ingress" else "web"
    return Claim(f"{name}.example.org", Reach.NAME, Origin(source, name, namespace), Terms(target=target))


def restore(registry: Registry) -> None:
    """A snapshot with existing names, deleted names, and addresses of Services."""
    registry.set_services({"edge/relay": ("10.96.0.9",), "shop/own": ("10.96.7.7",)})
    for source, name, target in (
        ("Ingress", "app", None),
        ("Ingress", "gone", None),
        ("HTTPRoute", "web", None),
        ("HTTPRoute", "own", "service:shop/own"),
    ):
        claim = claim_of(source, name, target=target)
        registry.touch(registry.shares.restore(source, f"{claim.origin.namespace}/{name}", [claim]))


async def test_a_snapshot_is_answered_while_the_server_is_away_and_until_all_was_read(
    autojump_clock: MockClock,
) -> None:
    api = make_api()
    put_route(api, "own.example.org", **chosen("shop/own"))
    put_service(api, "shop/own", "10.96.7.8")
    api.crash()
    async with watching(api, prepare=restore) as watched:
        await trio.sleep(20)
        assert watched.waiting == {INGRESS, GATEWAY, SERVICE, TARGETS}
        assert not watched.sources.consistent
        for name in ("app.example.org", "gone.example.org", "web.example.org"):
            assert watched.at(name) == ("10.96.0.9",)
        assert watched.at("own.example.org") == ("10.96.7.7",)
        watched.tables[:-1] = []
        api.recover()
        await watched.until_ready()
        await watched.until_at("gone.example.org", None)
        await watched.until_at("own.example.org", ("10.96.7.8",))
        assert watched.at("app.example.org") == RELAY
        await watched.until(lambda: watched.sources.consistent)
        for name in ("app.example.org", "web.example.org", "own.example.org"):
            assert all(addresses_of(table, name) for table in watched.tables)


async def test_a_service_that_an_unchanged_object_of_the_snapshot_chose_is_followed(autojump_clock: MockClock) -> None:
    """The object's claim equals the restored one, so that no change is reported."""
    api = make_api()

    def remember(registry: Registry) -> None:
        metadata = route("own.example.org", place="web/own").metadata
        origin = Origin("HTTPRoute", "own", "web", metadata.creation_timestamp or "")
        claim = Claim("own.example.org", Reach.NAME, origin, Terms(ingress_class="public", target="service:shop/own"))
        registry.touch(registry.shares.restore("HTTPRoute", "web/own", [claim]))

    put_route(api, "own.example.org", **chosen("shop/own"))
    put_service(api, "shop/own", "10.96.7.8")
    async with watching(api, prepare=remember) as watched:
        await watched.until_at("own.example.org", ("10.96.7.8",))
        assert watched.sources.services["shop/own"] == ("10.96.7.8",)


async def test_claims_are_not_consistent_before_the_gateway_api_was_looked_for(autojump_clock: MockClock) -> None:
    """A snapshot written now would lose its claims."""
    api = make_api()
    api.faults[f"/apis/{V1}"] = failure(503, "ServiceUnavailable")
    async with watching(api, ClusterSettings(gateway=GatewayOptions()), target="192.0.2.10") as watched:
        await watched.until(lambda: api.asked_for(f"/apis/{V1}") >= 3)
        assert all(status.synced for status in watched.sources.statuses)
        assert not watched.sources.consistent
        api.faults.clear()
        await watched.until(lambda: watched.sources.consistent)


async def test_claims_are_not_consistent_while_a_list_is_unconfirmed(autojump_clock: MockClock) -> None:
    api = make_api()
    async with watching(api) as watched:
        await watched.until_ready()
        await watched.until(lambda: watched.sources.consistent)
        # A server that starts empty and has lost its resource version.
        api.faults[INGRESSES] = failure(410, "Expired")
        api.crash()
        api.remove("networking.k8s.io", "ingresses", "shop/app")
        api.recover()
        await watched.until(lambda: api.asked_for(INGRESSES) >= 3)
        api.faults.clear()
        await watched.until(lambda: any(status.doubted for status in watched.sources.statuses))
        assert not watched.sources.consistent
        assert watched.at("app.example.org") == RELAY
        await watched.until_at("app.example.org", None)
        await watched.until(lambda: watched.sources.consistent)


async def test_claims_are_not_consistent_until_what_a_snapshot_had_too_much_is_forgotten(
    autojump_clock: MockClock,
) -> None:
    """Otherwise the next snapshot would treat it as fresh."""

    def remember(registry: Registry) -> None:
        for number in range(2_000):
            name = f"h{number}"
            claim = Claim(f"{name}.example.org", Reach.NAME, Origin("Ingress", name, "shop"))
            registry.touch(registry.shares.restore("Ingress", f"shop/{name}", [claim]))

    api = make_api()
    for number in range(250):  # enough for the list not to be doubted
        put_ingress(api, f"h{number}.example.org")
    settings = ClusterSettings(ingress=IngressOptions())
    async with watching(api, settings, target="192.0.2.10", prepare=remember) as watched:
        store = watched.keeper.registry.store
        while not watched.sources.consistent:
            await trio.lowlevel.checkpoint()
        assert store.restored("Ingress") == 0
        assert len(store.names()) == 251
