"""`dnsproxy serve` with a cluster, over loopback: its reports while it waits, and its start from a snapshot."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.targets import Targets
from dnsproxy.publish.source import ServerSource
from dnsproxy.serve.service import Bound
from dnsproxy.serve.settings import UpstreamConfigMaps
from dnsproxy.snapshot.file import write_file
from dnsproxy.snapshot.format import ObjectClaims, format_snapshot
from dnsproxy.sources.selection import Selection
from dnsproxy.sources.settings import ClusterSettings, GatewayOptions, IngressOptions
from dnsproxy.sources.static_names import parse_host_flag
from sidecar.admin.asking import ask as ask_admin
from sidecar.values.host_port import HostPort
from tests.dnsproxy.sources.test_cluster_sources import RELAY, RELAYS, claim_of, make_api, put_ingress
from tests.kit.faulty_api import failure
from tests.kit.faulty_upstream import faulty_upstream
from tests.kit.live_api import LiveApi
from tests.kit.public_dns import PublicDns
from tests.kit.serve_inside import addresses_in, ask, get, serving, settings

ALL: Final = ClusterSettings(ingress=IngressOptions(), gateway=GatewayOptions())
TAKEN: Final = 1_780_000_000.0


@asynccontextmanager
async def served_over_tcp(api: LiveApi) -> AsyncIterator[str]:
    """The URL of an API server."""

    async def serve(stream: trio.SocketStream) -> None:
        if not api.down:
            await api.serve(stream)

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def serving_cluster(
    url: str, folder: Path, *, cluster: ClusterSettings = ALL, snapshot: Path | None = None, **others: object
) -> AsyncIterator[Bound]:
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, url)
    cluster = replace(cluster, kubeconfig=str(kubeconfig))
    targets = Targets(("service:edge/relay",))
    async with serving(settings(cluster=cluster, targets=targets, snapshot=snapshot, hosts=(), **others)) as bound:
        yield bound


def write_kubeconfig(path: Path, url: str) -> None:
    path.write_text(
        f"apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{server: '{url}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
    )


def write_snapshot(path: Path, *, url: str) -> None:
    """Two existing names, a deleted one, and the addresses of their target."""
    objects = [
        ObjectClaims(source, f"{namespace}/{name}", (claim_of(source, name),))
        for source, namespace, name in (
            ("Ingress", "shop", "app"),
            ("Ingress", "shop", "gone"),
            ("HTTPRoute", "web", "web"),
        )
    ]
    services = {"edge/relay": ("10.96.0.9",)}
    write_file(path, format_snapshot(objects, taken=TAKEN, settings=ALL.snapshot_settings(url), services=services))


async def until_ready(bound: Bound, reason: str) -> None:
    """Each request waits for its reply."""
    while await get(bound.admin, "/readyz") != (200, reason):
        pass


async def until_not_ready(bound: Bound, reason: str) -> None:
    while await get(bound.admin, "/readyz") != (503, reason):
        pass


async def read(bound: Bound, target: str) -> Any:
    """A page in JSON, as `dnsproxy table` and `dnsproxy explain` read it."""
    assert bound.admin is not None
    return json.loads(await ask_admin(bound.admin, target, program="dnsproxy serve"))


async def notes(bound: Bound) -> list[str]:
    """The notes of the table; an explanation has the same."""
    table = (await read(bound, "/table"))["notes"]
    assert (await read(bound, "/explain?name=app.example.org"))["notes"] == table
    return list(table)


async def test_every_source_is_answered_and_nothing_is_noted(tmp_path: Path) -> None:
    async with served_over_tcp(make_api()) as url, serving_cluster(url, tmp_path) as bound:
        await until_ready(bound, "ready, 2 names\n")
        for name in ("app.example.org", "web.example.org"):
            assert addresses_in(await ask(bound.dns[0], name)) == list(RELAY)
        assert await notes(bound) == []
        page = (await get(bound.admin, "/"))[1]
    for kind in ("Ingress", "IngressClass", "Gateway", "HTTPRoute", "Namespace", "Service edge/relay"):
        assert re.search(f'<th scope="row">{kind}</th><td><span class="value" data-level="ok"[^>]*>watching<', page)


async def test_publishers_get_claimed_names_that_do_not_lead_elsewhere_and_the_others_are_answered_by_public_dns(
    tmp_path: Path,
) -> None:
    api = make_api()
    put_ingress(api, "www.example.org")
    public = PublicDns("www.example.org 60 A 198.51.100.7")
    async with faulty_upstream(public, public) as there, served_over_tcp(api) as url:
        ownership, forwarding = OwnershipSettings(Mode.VERIFY), ForwardSettings((there.endpoint,))
        async with serving_cluster(url, tmp_path, ownership=ownership, forwarding=forwarding) as bound:
            await until_ready(bound, "ready, 3 names\n")
            assert bound.admin is not None
            publication = await ServerSource(HostPort("127.0.0.1", bound.admin.port)).read()
            rewrites = await read(bound, "/rewrites")
            assert addresses_in(await ask(bound.dns[0], "www.example.org")) == ["198.51.100.7"]
    assert [name.hostname for name in publication.names] == ["app.example.org", "web.example.org"]
    assert sorted(name for name, *_ in rewrites["names"]) == ["app.example.org", "web.example.org"]
    assert rewrites["waiting_for"] == []


@pytest.mark.parametrize(
    ("path", "waits_for"),
    [
        pytest.param("/apis/networking.k8s.io/v1/ingresses", "Ingress", id="Ingress"),
        pytest.param("/apis/gateway.networking.k8s.io/v1/gateways", "Gateway API", id="Gateway"),
        pytest.param(RELAYS, "rights, target Services", id="the target's Service"),
    ],
)
async def test_it_is_not_ready_and_reports_what_it_waits_for(tmp_path: Path, path: str, waits_for: str) -> None:
    api = make_api()
    api.faults[path] = failure(403, "Forbidden")
    async with served_over_tcp(api) as url, serving_cluster(url, tmp_path) as bound:
        waits = f"waiting for the first sync of: {waits_for}"
        await until_not_ready(bound, f"{waits}\n")
        assert await notes(bound) == [waits]


async def test_a_name_in_the_cluster_domain_of_the_corefile_is_nobodys(tmp_path: Path) -> None:
    """A pod with the node's resolv.conf has no search list to learn it from."""
    api = make_api()
    api.provide("v1", "configmaps")
    metadata = {"name": "coredns", "namespace": "kube-system"}

    def serve_domain(domain: str) -> None:
        lines = [". {", f"  kubernetes {domain} in-addr.arpa", "  forward . 192.0.2.53", "}"]
        api.put("", "configmaps", {"metadata": metadata, "data": {"Corefile": "\n".join(lines)}})

    serve_domain("k8s.example.net")
    async with served_over_tcp(api) as url:
        kubeconfig = tmp_path / "kubeconfig"
        write_kubeconfig(kubeconfig, url)
        followed = UpstreamConfigMaps((ObjectRef("kube-system", "coredns"),), str(kubeconfig))
        static = tuple(parse_host_flag(f"{name}=192.0.2.10") for name in ("a.k8s.example.net", "b.cluster.local"))
        wanted = settings(upstream_configmaps=followed, hosts=static)
        async with serving(wanted) as bound:
            await until_ready(bound, "ready, 1 names\n")
            assert addresses_in(await ask(bound.dns[0], "b.cluster.local")) == ["192.0.2.10"]
            assert (
                "inside the cluster domain k8s.example.net"
                in (await get(bound.admin, "/explain?name=a.k8s.example.net"))[1]
            )
            serve_domain("cluster.local")
            while addresses_in(await ask(bound.dns[0], "a.k8s.example.net")) != ["192.0.2.10"]:
                pass
            assert addresses_in(await ask(bound.dns[0], "b.cluster.local")) == []


async def test_it_is_not_ready_and_forwards_nothing_before_the_upstreams_were_read(tmp_path: Path) -> None:
    """Then it forwards there, says so to a probe, and notes what it cannot follow."""
    path = "/api/v1/namespaces/kube-system/configmaps"
    api = make_api()
    api.provide("v1", "configmaps")
    api.faults[path] = failure(500, "Error")
    async with faulty_upstream() as node, faulty_upstream() as theirs, served_over_tcp(api) as url:
        lines = [". {", f"  forward . {theirs.endpoint}", "}"]
        metadata = {"name": "coredns", "namespace": "kube-system"}
        api.put("", "configmaps", {"metadata": metadata, "data": {"Corefile": "\n".join(lines)}})
        kubeconfig = tmp_path / "kubeconfig"
        write_kubeconfig(kubeconfig, url)
        followed = UpstreamConfigMaps((ObjectRef("kube-system", "coredns"),), str(kubeconfig))
        wanted = settings(
            forwarding=ForwardSettings((node.endpoint,), detect_loops=False), upstream_configmaps=followed, hosts=()
        )
        async with serving(wanted) as bound:
            await until_not_ready(bound, "waiting for the first sync of: upstreams\n")
            await ask(bound.dns[0], "www.example.net")
            assert node.asked_datagrams == []
            api.faults.clear()
            await until_ready(bound, "ready, 0 names\n")
            assert addresses_in(await ask(bound.dns[0], "other.example.net")) == ["198.51.100.7"]
            assert (len(theirs.asked_datagrams), node.asked_datagrams) == (1, [])
            (result,) = await ask_all(bound.dns, (".",))
            assert {one.forwards for one in result.outcomes} == {f". {theirs.endpoint}"}
            assert await notes(bound) == []


async def test_of_several_config_maps_the_first_that_is_there_is_followed_and_a_hidden_one_is_on_the_page(
    tmp_path: Path,
) -> None:
    api = make_api()
    api.provide("v1", "configmaps")
    api.faults["/api/v1/namespaces/openshift-dns/configmaps"] = failure(403, "Forbidden")
    refs = [ObjectRef("openshift-dns", "dns-default"), ObjectRef("kube-system", "a"), ObjectRef("kube-system", "b")]

    def put(name: str, upstream: str) -> None:
        data = {"Corefile": f". {{\n  forward . {upstream}\n}}\n"}
        api.put("", "configmaps", {"metadata": {"name": name, "namespace": "kube-system"}, "data": data})

    async def until_forwarding(bound: Bound, upstream: str) -> None:
        reports: set[str | None] = set()
        while reports != {f". {upstream}"}:
            (result,) = await ask_all(bound.dns, (".",))
            reports = {one.forwards for one in result.outcomes}

    put("b", "192.0.2.61")
    async with served_over_tcp(api) as url:
        kubeconfig = tmp_path / "kubeconfig"
        write_kubeconfig(kubeconfig, url)
        async with serving(settings(upstream_configmaps=UpstreamConfigMaps(tuple(refs), str(kubeconfig)))) as bound:
            await until_ready(bound, "ready, 1 names\n")
            await until_forwarding(bound, "192.0.2.61")
            (note,) = await notes(bound)
            assert note.startswith("ConfigMap openshift-dns/dns-default is skipped: 403")
            metrics = (await get(bound.admin, "/metrics"))[1]
            assert "dnsproxy_forward_upstreams_not_followed 0.0" in metrics
            assert re.search(r'source_errors_total{cause="forbidden",source="ConfigMap openshift-dns/', metrics)
            put("a", "192.0.2.62")
            await until_forwarding(bound, "192.0.2.62")
            page = (await get(bound.admin, "/"))[1]
            assert "ConfigMap openshift-dns/dns-default is skipped" in page
            assert "ConfigMap kube-system/a" in page
            assert "ConfigMap kube-system/b" not in page
            api.remove("", "configmaps", "kube-system/a")
            await until_forwarding(bound, "192.0.2.61")


async def test_a_target_without_an_address_is_noted_and_its_names_are_forwarded(tmp_path: Path) -> None:
    api = make_api()
    api.remove("", "services", "edge/relay")
    async with served_over_tcp(api) as url, serving_cluster(url, tmp_path) as bound:
        await until_ready(bound, "ready, 0 names\n")
        assert await notes(bound) == ["target service:edge/relay: there is no such Service"]
        told = await read(bound, "/explain?name=app.example.org")
        assert told["answer"] is None
        assert "service:edge/relay" in told["left_out"][0]["reason"]


async def test_a_snapshot_is_answered_at_once_and_its_age_is_shown_until_the_cluster_has_reported(
    tmp_path: Path,
) -> None:
    """Its names, and the addresses of their target Service."""
    api = make_api()
    api.crash()
    snapshot = tmp_path / "snapshot"
    async with served_over_tcp(api) as url:
        write_snapshot(snapshot, url=url)
        async with serving_cluster(url, tmp_path, snapshot=snapshot) as bound:
            for name in ("app.example.org", "gone.example.org", "web.example.org"):
                assert addresses_in(await ask(bound.dns[0], name)) == ["10.96.0.9"]
            status, reason = await get(bound.admin, "/readyz")
            assert status == 200
            assert reason.startswith("ready, the cluster's names are from a snapshot, ")
            assert reason.endswith("; waiting for the first sync of: Ingress, Gateway API, rights, target Services\n")
            waits, age = await notes(bound)
            assert waits == "waiting for the first sync of: Ingress, Gateway API, rights, target Services"
            assert "(taken 2026-05-28T20:26:40Z)" in age
            api.recover()
            await until_ready(bound, "ready, 2 names\n")
            assert await notes(bound) == []
            assert addresses_in(await ask(bound.dns[0], "app.example.org")) == list(RELAY)


@pytest.mark.parametrize("other", ["cluster", "filter"])
async def test_a_snapshot_of_another_cluster_or_with_another_filter_is_not_answered(tmp_path: Path, other: str) -> None:
    api = make_api()
    api.crash()
    snapshot = tmp_path / "snapshot"
    async with served_over_tcp(api) as url:
        write_snapshot(snapshot, url="https://192.0.2.1:6443" if other == "cluster" else url)
        classes = IngressOptions(frozenset({"public"} if other == "filter" else set()))
        cluster = replace(ALL, ingress=classes)
        async with serving_cluster(url, tmp_path, cluster=cluster, snapshot=snapshot) as bound:
            assert (await get(bound.admin, "/readyz"))[0] == 503
            assert (await read(bound, "/table"))["names"] == []


@pytest.mark.parametrize("asked", [True, False], ids=["nameservers asked too", "search domains alone"])
async def test_the_search_domains_are_followed_while_the_server_runs(
    tmp_path: Path, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dnsproxy.forward.settings.DNS_PORT", 9)
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 127.0.0.1\n")
    others: dict[str, Any] = {"resolv_conf": path if asked else None, "search_conf": path}
    async with served_over_tcp(make_api()) as url, serving_cluster(url, tmp_path, **others) as bound:
        await until_ready(bound, "ready, 2 names\n")
        path.write_text("nameserver 127.0.0.1\nsearch example.org\n")
        await until_ready(bound, "ready, 0 names\n")
        (excluded,) = (await read(bound, "/explain?name=app.example.org"))["left_out"]
        assert excluded["reason"].startswith("it is in the search domain example.org")
        path.write_text("nameserver 127.0.0.1\n")
        await until_ready(bound, "ready, 2 names\n")


@pytest.mark.parametrize("watched", [True, False], ids=["a cluster", "static names alone"])
async def test_the_public_suffixes_are_read_before_the_first_query_if_a_cluster_is_watched(
    tmp_path: Path, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr("dnsproxy.serve.service.load_public_suffixes", lambda: read.append("list"))
    async with served_over_tcp(make_api()) as url:
        started = serving_cluster(url, tmp_path) if watched else serving(settings())
        async with started:
            assert read == ["list"] * watched


async def test_a_namespace_that_cannot_be_read_is_named_until_it_can(tmp_path: Path) -> None:
    """By /readyz and by the notes of every page; the page of the sources has one row for each kind."""
    api = make_api()
    api.faults["/apis/networking.k8s.io/v1/namespaces/blog/ingresses"] = failure(403, "Forbidden")
    chosen = replace(ALL, gateway=None, selection=Selection(("shop", "blog")))
    async with served_over_tcp(api) as url, serving_cluster(url, tmp_path, cluster=chosen) as bound:
        waits = "waiting for the first sync of: Ingress; Ingress: namespace blog: 403: so it goes"
        await until_not_ready(bound, f"{waits}\n")
        assert await notes(bound) == [waits]
        page = (await get(bound.admin, "/"))[1]
        assert page.count('<th scope="row">Ingress</th>') == 1
        assert "retrying: namespace blog: 403: so it goes" in page
        metrics = (await get(bound.admin, "/metrics"))[1]
        assert 'dnsproxy_source_errors_total{cause="forbidden",source="Ingress"}' in metrics
        api.faults.clear()
        await until_ready(bound, "ready, 1 names\n")
        assert await notes(bound) == []
