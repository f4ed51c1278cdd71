"""Kinds of other projects, by their own definitions on a real kube-apiserver; answered by a real `dnsproxy serve`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.kit import custom_resources as api
from tests.kit.apiserver import ApiServer, in_thread, running_apiserver
from tests.kit.polling import pause
from tests.kit.prepared_program import play
from tests.kit.serve_inside import addresses_in, ask, get, never_missing, until_answered
from tests.kit.serve_process import Serving, serving

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "traefik-crds", "contour-crds", "openshift-crds", "istio-crds")

RELAY: Final = "192.0.2.50"
SITES: Final = "crd:sites.example.org:spec.hosts[*]"
ADMITTED: Final = {
    "ingress": [
        {
            "routerName": "default",
            "host": "r.example.org",
            "conditions": [{"type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }
    ]
}
VALID: Final = {"currentStatus": "valid", "description": "Valid HTTPProxy"}


def http_proxy(fqdn: str) -> dict[str, Any]:
    route = {"conditions": [{"prefix": "/"}], "services": [{"name": "web", "port": 80}]}
    return {"spec": {"virtualhost": {"fqdn": fqdn}, "routes": [route]}}


def ingress_route(*rules: str) -> dict[str, Any]:
    services = [{"name": "web", "port": 80}]
    return {"spec": {"routes": [{"kind": "Rule", "match": rule, "services": services} for rule in rules]}}


def ingress_route_tcp(rule: str) -> dict[str, Any]:
    return {"spec": {"routes": [{"match": rule, "services": [{"name": "web", "port": 80}]}], "tls": {}}}


def route(host: str, **more: Any) -> dict[str, Any]:
    return {"spec": {"host": host, "to": {"kind": "Service", "name": "web"}, **more}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A separate API server: definitions apply to the whole cluster."""
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as one:
        yield one


@contextmanager
def serving_sources(folder: Path, server: ApiServer, *sources: str, flags: tuple[str, ...] = ()) -> Iterator[Serving]:
    chosen = [part for source in sources for part in ("--source", source)]
    common = ("--upstream", "127.0.0.1:9", "--target", RELAY, "--kubeconfig", str(server.kubeconfig))
    with serving(folder, *common, *chosen, *flags) as one:
        yield one


async def until_ready(server: Serving, reason: str = "ready, ") -> None:
    while True:
        status, text = await get(server.admin_endpoint, "/readyz")
        if status == 200 and text.startswith(reason):
            return
        await pause()


async def explain(server: Serving, name: str) -> Any:
    """The output of `dnsproxy explain`."""
    command = [sys.executable, "-m", "dnsproxy", "explain", name, "--admin", server.admin, "--output", "json"]
    done = await trio.to_thread.run_sync(play, command)
    return json.loads(done.stdout)


async def origin_of(server: Serving, name: str) -> str:
    """The object that has a name, as `KIND NAME`."""
    origin = (await explain(server, name))["answer"]["origin"]
    return f"{origin['kind']} {origin['name']}"


KINDS: Final = (
    pytest.param("traefik", "traefik.io/v1alpha1", "ingressroutes", "IngressRoute",
                 ingress_route("Host(`r.example.org`) && PathPrefix(`/x`)"), id="IngressRoute"),
    pytest.param("traefik", "traefik.io/v1alpha1", "ingressroutetcps", "IngressRouteTCP",
                 ingress_route_tcp("HostSNI(`r.example.org`)"), id="IngressRouteTCP"),
    pytest.param("openshift", "route.openshift.io/v1", "routes", "Route",
                 route("r.example.org") | {"status": ADMITTED}, id="Route"),
    pytest.param("contour", "projectcontour.io/v1", "httpproxies", "HTTPProxy",
                 http_proxy("r.example.org") | {"status": VALID}, id="HTTPProxy"),
)  # fmt: skip


@pytest.mark.parametrize(("source", "version", "plural", "kind", "body"), KINDS)
async def test_a_kind_is_answered_while_its_definition_is_there(
    server: ApiServer, tmp_path: Path, source: str, version: str, plural: str, kind: str, body: dict[str, Any]
) -> None:
    """Absent, installed, an object created and deleted, the definition removed; Ingresses notice nothing."""
    found = await in_thread(api.definitions, version.partition("/")[0], [plural])
    assert found
    ingress = await in_thread(server.create_ingress, "neighbour", ["neighbour.example.net"])
    with serving_sources(tmp_path, server, source, "ingress") as ours:
        await until_ready(ours, "ready, 1 names")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(never_missing, ours.endpoint, "neighbour.example.net", RELAY)
            await in_thread(api.install, server, found)
            path = await in_thread(lambda: api.create(server, version, plural, "first", body, kind=kind))
            await until_answered(ours.endpoint, "r.example.org", RELAY)
            assert await origin_of(ours, "r.example.org") == f"{kind} first"
            await in_thread(server.request, "DELETE", path)
            await until_answered(ours.endpoint, "r.example.org")
            await in_thread(lambda: api.create(server, version, plural, "second", body, kind=kind))
            await until_answered(ours.endpoint, "r.example.org", RELAY)
            await in_thread(api.remove, server, found)
            await until_answered(ours.endpoint, "r.example.org")
            await until_ready(ours, "ready, 1 names")
            nursery.cancel_scope.cancel()
    await in_thread(server.delete_ingress, ingress["metadata"]["name"])


async def test_an_object_that_its_controller_does_not_serve_is_forwarded_until_it_does(
    server: ApiServer, tmp_path: Path
) -> None:
    found = await in_thread(api.definitions, "projectcontour.io", ["httpproxies"])
    await in_thread(api.install, server, found)
    place = ("projectcontour.io/v1", "httpproxies", "shop")
    path = await in_thread(lambda: api.create(server, *place, http_proxy("shop.example.org"), kind="HTTPProxy"))
    with serving_sources(tmp_path, server, "contour") as ours:
        await until_ready(ours)
        (refused,) = (await explain(ours, "shop.example.org"))["rejected"]
        assert "no Contour has judged it yet" in refused
        await in_thread(api.set_status, server, path, VALID)
        await until_answered(ours.endpoint, "shop.example.org", RELAY)
        orphaned = {"currentStatus": "invalid", "description": "fqdn is used in multiple HTTPProxies"}
        await in_thread(api.set_status, server, path, orphaned)
        await until_answered(ours.endpoint, "shop.example.org")
    await in_thread(api.remove, server, found)


async def test_the_older_object_has_the_name_whatever_its_kind(server: ApiServer, tmp_path: Path) -> None:
    found = await in_thread(api.definitions, "traefik.io", ["ingressroutes"])
    await in_thread(api.install, server, found)
    created = await in_thread(server.create_ingress, "first", ["both.example.org"])
    body = ingress_route("Host(`both.example.org`) || Host(`own.example.org`)")
    await in_thread(lambda: api.create(server, "traefik.io/v1alpha1", "ingressroutes", "zz", body, kind="IngressRoute"))
    with serving_sources(tmp_path, server, "traefik", "ingress") as ours:
        await until_ready(ours)
        await until_answered(ours.endpoint, "own.example.org", RELAY)
        assert await origin_of(ours, "both.example.org") == "Ingress first"
        await in_thread(server.delete_ingress, created["metadata"]["name"])
        while await origin_of(ours, "both.example.org") != "IngressRoute zz":
            await pause()
    await in_thread(api.remove, server, found)


async def test_a_virtual_service_is_answered_through_its_gateway(server: ApiServer, tmp_path: Path) -> None:
    """Both of Istio's kinds, in a version that changes: no name is lost, and each kind follows the other."""
    version = "networking.istio.io/v1"
    found = await in_thread(api.definitions, "networking.istio.io", ["gateways", "virtualservices"])
    await in_thread(api.install, server, found)
    port = {"number": 443, "name": "https", "protocol": "HTTPS"}
    tls = {"mode": "SIMPLE", "credentialName": "web"}
    servers = [{"port": port, "hosts": ["./*.example.org"], "tls": tls}]
    gateway = {"spec": {"selector": {"istio": "ingressgateway"}, "servers": servers}}
    routes = [{"route": [{"destination": {"host": "web"}}]}]
    bound = {"spec": {"hosts": ["shop.example.org", "shop.example.net"], "gateways": ["main"], "http": routes}}
    for_mesh = {"spec": {"hosts": ["mesh.example.org"], "http": routes}}
    with serving_sources(tmp_path, server, "istio", flags=("--class-of", "istio=istio=ingressgateway")) as ours:
        await until_ready(ours, "ready, 0 names")
        for name, body in {"shop": bound, "mesh": for_mesh}.items():
            await in_thread(
                lambda name=name, body=body: api.create(
                    server, version, "virtualservices", name, body, kind="VirtualService"
                )
            )
        path = await in_thread(lambda: api.create(server, version, "gateways", "main", gateway, kind="Gateway"))
        await until_answered(ours.endpoint, "shop.example.org", RELAY)
        assert await origin_of(ours, "shop.example.org") == "VirtualService shop"
        for name in ("shop.example.net", "mesh.example.org"):
            while not (await explain(ours, name))["rejected"]:
                await pause()
            assert (await explain(ours, name))["answer"] is None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(never_missing, ours.endpoint, "shop.example.org", RELAY)
            await in_thread(serve_only, server, "virtualservices.networking.istio.io", "v1beta1")
            while "/apis/networking.istio.io/v1beta1/virtualservices" not in ours.log.read_text():  # noqa: ASYNC110
                await trio.sleep(0.05)
            nursery.cancel_scope.cancel()
        await in_thread(server.request, "DELETE", path)
        await until_answered(ours.endpoint, "shop.example.org")
    await in_thread(api.remove, server, found)


def serve_only(server: ApiServer, definition: str, version: str) -> None:
    """Serve one version of a kind, as upgrades of its definition do over the years."""
    path = f"{api.CRDS}/{definition}"
    rows = server.request("GET", path)["spec"]["versions"]
    patch = [
        {"op": "replace", "path": f"/spec/versions/{number}/served", "value": one["name"] == version}
        for number, one in enumerate(rows)
    ]
    server.request("PATCH", path, patch, content_type="application/json-patch+json")


async def test_a_custom_kind_is_read_by_its_path_in_the_version_that_is_served(
    server: ApiServer, tmp_path: Path
) -> None:
    """Objects that do not parse affect no other; another version takes over without a name lost."""
    definition = api.open_definition("sites", "example.org", "v1", "v2")
    await in_thread(api.install, server, [definition])

    def create(name: str, spec: Any) -> str:
        return api.create(server, "example.org/v1", "sites", name, {"spec": spec}, kind="Site")

    await in_thread(create, "good", {"hosts": ["a.example.net", "*.b.example.net"]})
    for name, spec in {
        "text": "hosts",
        "number": {"hosts": [7]},
        "map": {"hosts": {"x": {"y": "c.example.net"}}},
    }.items():
        await in_thread(create, name, spec)
    with serving_sources(tmp_path, server, SITES) as ours:
        await until_ready(ours, "ready, 2 names")
        await until_answered(ours.endpoint, "deep.in.b.example.net", RELAY)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(never_missing, ours.endpoint, "a.example.net", RELAY)
            patch = [{"op": "replace", "path": "/spec/versions/1/served", "value": False}]
            path = f"{api.CRDS}/sites.example.org"
            await in_thread(lambda: server.request("PATCH", path, patch, content_type="application/json-patch+json"))
            await in_thread(create, "late", {"hosts": ["late.example.net"]})
            await until_answered(ours.endpoint, "late.example.net", RELAY)
            nursery.cancel_scope.cancel()
    await in_thread(api.remove, server, [definition])


async def test_a_filter_by_class_and_a_snapshot_know_the_source(server: ApiServer, tmp_path: Path) -> None:
    """The snapshot of one filter is not used with another."""
    found = await in_thread(api.definitions, "traefik.io", ["ingressroutes"])
    await in_thread(api.install, server, found)
    for name in ("internal", "public"):
        body, annotations = ingress_route(f"Host(`{name}.example.org`)"), {"kubernetes.io/ingress.class": name}
        await in_thread(
            lambda body=body, name=name, annotations=annotations: api.create(
                server, "traefik.io/v1alpha1", "ingressroutes", name, body, kind="IngressRoute", annotations=annotations
            )
        )
    snapshot = tmp_path / "snapshot"
    flags = ("--class-of", "traefik=internal", "--snapshot", str(snapshot))
    with serving_sources(tmp_path, server, "traefik", flags=flags) as ours:
        await until_ready(ours, "ready, 1 names")
        await until_answered(ours.endpoint, "internal.example.org", RELAY)
        while not snapshot.exists():  # noqa: ASYNC110  # another process
            await trio.sleep(0.05)
    server.kill()
    with serving_sources(tmp_path, server, "traefik", flags=flags) as ours:
        await until_answered(ours.endpoint, "internal.example.org", RELAY)
    other = ("--class-of", "traefik=public", "--snapshot", str(snapshot))
    with serving_sources(tmp_path, server, "traefik", flags=other) as ours:
        assert addresses_in(await ask(ours.endpoint, "internal.example.org")) == []
    server.start()
