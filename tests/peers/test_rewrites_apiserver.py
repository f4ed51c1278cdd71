"""The method override-rewrites in a cluster like a cozystack tenant's: a real kube-apiserver, `serve` and CoreDNS."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dns.exception
import dns.rcode
import pytest

from tests.kit.apiserver import ingress
from tests.kit.coredns import CoreDns, answering, running_coredns
from tests.kit.living_dns import Data, LivingCluster, following, localize
from tests.kit.manifest_cluster import Manifest, manifests, pick
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.ready_services import delete_endpoint, put_endpoint
from tests.kit.serve_process import Serving, serving
from tests.kit.tenant_dns import CUSTOM, TENANT, with_kubeconfig
from tests.kit.watching import Watching, watching
from tests.peers.test_install_apiserver import bare, cluster

__all__ = ["cluster"]

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "coredns"), pytest.mark.timeout(400)]

BY_UPSTREAM: Final = "192.0.2.2"
KEY: Final = "switchback.override"
MAPS: Final = ("coredns", "coredns-custom")


@dataclass(frozen=True)
class Tenant:
    """A tenant's cluster, a relay's Service in it, and dnsproxy."""

    cluster: LivingCluster
    dnsproxy: Serving
    upstream: CoreDns
    port: int
    relay: str
    """The ClusterIP of the relay's Service."""

    @property
    def zone(self) -> str:
        """The zone of its names: other tests have Ingresses in the same API server."""
        return f"{self.cluster.namespace}.example.org"

    def host(self, name: str) -> str:
        return f"{name}.{self.zone}"

    def render(self, data: Data) -> dict[str, str]:
        """The files of CoreDNS's container."""
        words = {
            "/etc/resolv.conf": f"127.0.0.1:{self.upstream.port}",
            CUSTOM: str(self.cluster.folder / "mounted"),
        }
        corefile = with_kubeconfig(data["coredns"].get("Corefile", ""), self.cluster.server.kubeconfig)
        files = {"Corefile": corefile, **data.get("coredns-custom", {})}
        return {name: localize(text, self.port, words) for name, text in files.items()} | {"port": str(self.port)}

    @contextmanager
    def coredns(self) -> Iterator[CoreDns]:
        with following(self.cluster, MAPS, self.render) as coredns:
            name = f"relay.{self.cluster.namespace}.svc.cluster.local"
            poll_until(lambda: coredns.addresses(name) == [self.relay], "the relay's Service in CoreDNS", seconds=60)
            yield coredns

    @property
    def places(self) -> list[str]:
        return ["--from", self.dnsproxy.admin, "--dns", f"127.0.0.1:{self.port}"]

    def run(self, command: str, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        own = ["--service", f"{self.cluster.namespace}/dnsproxy"]
        own += self.places[2:] if command == "uninstall" else self.places
        return self.cluster.dnsproxy(command, *own, *arguments, kubeconfig=kubeconfig)

    def key(self) -> str:
        return self.cluster.data("coredns-custom").get(KEY, "")

    def names(self) -> list[str]:
        """The exact names in the key."""
        return [line.split()[4].removesuffix(".") for line in self.key().splitlines() if " exact " in line]

    def ingress(self, name: str, *hosts: str) -> None:
        namespace = self.cluster.namespace
        path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses"
        self.cluster.server.request("POST", path, ingress(name, list(hosts), namespace=namespace))

    def wait_served(self, *hosts: str) -> None:
        """Until dnsproxy's table has these names."""
        poll_until(lambda: self.dnsproxy.metric("dnsproxy_table_names") == len(hosts), "names served", seconds=60)


@pytest.fixture
def tenant(cluster: LivingCluster, tmp_path: Path) -> Iterator[Tenant]:
    namespace, server = cluster.namespace, cluster.server
    cluster.create(objects(), manager="helm-controller")
    cluster.create_own_service()
    spec = {"ports": [{"name": "https", "port": 443}], "selector": {"app": "relay"}}
    path = f"/api/v1/namespaces/{namespace}/services"
    made = server.request("POST", path, {"metadata": {"name": "relay"}, "spec": spec})
    put_endpoint(server, f"{namespace}/relay")
    with running_coredns(tmp_path, answering(BY_UPSTREAM)) as upstream:
        where = ["--upstream", f"127.0.0.1:{upstream.port}", "--kubeconfig", str(server.kubeconfig)]
        given = ["--source", "ingress", "--zone", f"{namespace}.example.org", "--target", f"service:{namespace}/relay"]
        with serving(tmp_path, *where, *given) as dnsproxy:
            yield Tenant(cluster, dnsproxy, upstream, free_port(), made["spec"]["clusterIP"])


def objects() -> list[Manifest]:
    found = manifests("cozystack")
    pick(found, "ConfigMap", "coredns")["data"]["Corefile"] = TENANT
    return found


def before(tenant: Tenant) -> list[Any]:
    return [bare(tenant.cluster.config_map(name)) for name in MAPS]


def test_a_tenant_is_installed_loaded_and_left_as_it_was_with_the_printed_rights_alone(tenant: Tenant) -> None:
    app, shop, wild = tenant.host("app"), tenant.host("shop"), f"*.{tenant.host('wild')}"
    cluster, there = tenant.cluster, before(tenant)
    tenant.ingress("web", app, wild)
    tenant.wait_served(app, wild)
    with tenant.coredns() as coredns:
        assert coredns.addresses(app) == [BY_UPSTREAM]
        dry = tenant.run("install", "--dry-run", "--output", "json")
        document = json.loads(dry.stdout)
        assert (dry.returncode, document["wrote"], document["method"]) == (0, False, "override-rewrites"), dry.stderr
        assert document["names"]["rewritten"] == [wild, app]
        assert before(tenant) == there
        kubeconfig, _ = cluster.kubeconfig(document["rbac"])
        done = tenant.run("install", kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stdout + done.stderr
        verdict = "installed and loaded: the cluster's DNS rewrites 2 names to their Services"
        assert done.stdout.splitlines()[-1] == verdict
        assert [coredns.addresses(name) for name in (app, tenant.host("a.wild"))] == [[tenant.relay]] * 2
        assert [coredns.addresses(name) for name in (shop, tenant.host("a.b.wild"), tenant.zone)] == [[BY_UPSTREAM]] * 3
        written = cluster.config_map("coredns-custom")
        again = tenant.run("install", "--output", "json", kubeconfig=kubeconfig)
        assert (again.returncode, json.loads(again.stdout)["wrote"]) == (0, False)
        assert cluster.config_map("coredns-custom") == written
        status = tenant.run("status", "--output", "json")
        seen = json.loads(status.stdout)
        assert (status.returncode, seen["verdict"]) == (0, verdict), status.stdout
        assert (seen["names"]["standing"], seen["names"]["missing"], seen["drift"]) == (2, [], None)
        assert seen["installed"][0]["names"] == [wild, app]
        rights = json.loads(tenant.run("uninstall", "--dry-run", "--output", "json").stdout)["rbac"]
        out = tenant.run("uninstall", kubeconfig=cluster.kubeconfig(rights)[0])
        assert out.returncode == 0, out.stdout + out.stderr
        assert out.stdout.splitlines()[-1] == "removed, and the cluster's DNS no longer rewrites names"
        assert coredns.addresses(app) == [BY_UPSTREAM]
    assert before(tenant) == there


def test_a_config_map_that_is_absent_is_created_and_deleted_again(tenant: Tenant) -> None:
    app = tenant.host("app")
    cluster = tenant.cluster
    cluster.server.request("DELETE", f"/api/v1/namespaces/{cluster.namespace}/configmaps/coredns-custom")
    tenant.ingress("web", app)
    tenant.wait_served(app)
    rights = json.loads(tenant.run("install", "--dry-run", "--output", "json").stdout)["rbac"]
    kubeconfig, _ = cluster.kubeconfig(rights)
    done = tenant.run("install", "--timeout", "0", kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tenant.names() == [app]
    assert tenant.run("uninstall", "--timeout", "0", kubeconfig=kubeconfig).returncode == 0
    assert cluster.config_map("coredns-custom") is None


def test_names_follow_the_table_and_never_point_where_nobody_listens(tenant: Tenant, tmp_path: Path) -> None:
    app, shop = map(tenant.host, ("app", "shop"))
    cluster, key = tenant.cluster, f"{tenant.cluster.namespace}/relay"
    tenant.ingress("web", app)
    document = json.loads(tenant.run("install", "--dry-run", "--output", "json").stdout)
    kubeconfig, _ = cluster.kubeconfig([*document["rbac"], *document["rbac_watch"]])
    with tenant.coredns() as coredns, watching(cluster, tmp_path, *tenant.places, kubeconfig=kubeconfig) as watcher:
        watcher.wait_ready()
        watcher.wait(lambda: coredns.addresses(app) == [tenant.relay])
        tenant.ingress("shop", shop)
        watcher.wait(lambda: sorted(tenant.names()) == [app, shop])
        watcher.wait(lambda: coredns.addresses(shop) == [tenant.relay])
        # The relay has no ready pod any more: the names have their public addresses again.
        put_endpoint(cluster.server, key, ready=False)
        watcher.wait(lambda: tenant.names() == [])
        watcher.wait(lambda: coredns.addresses(app) == [BY_UPSTREAM])
        put_endpoint(cluster.server, key)
        watcher.wait(lambda: sorted(tenant.names()) == [app, shop])
        # None of that was another writer's doing.
        assert watcher.metrics()["dnsproxy_install_undone_total"] == 0
        # A hung dnsproxy takes no name away.
        tenant.dnsproxy.hang()
        watcher.wait(lambda: bool(watcher.lines("dnsproxy gives no names, and those of the stanza stay")))
        assert sorted(tenant.names()) == [app, shop]
        tenant.dnsproxy.resume()
        watcher.wait(lambda: bool(watcher.lines("dnsproxy gives its names again")))
        # An edit by hand is undone.
        written = tenant.key()
        cluster.patch("coredns-custom", {"data": {KEY: written.replace("app.", "other.")}})
        watcher.wait(lambda: tenant.key() == written)
        watcher.wait(lambda: watcher.metrics()["dnsproxy_install_undone_total"] == 1)
        assert_events(cluster, watcher)
        assert watcher.terminate() == 0
    assert tenant.key() == written


def assert_events(cluster: LivingCluster, watcher: Watching) -> None:
    path = f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events"

    def notes() -> dict[str, str]:
        found = cluster.server.request("GET", path)["items"]
        return {one["reason"]: one["note"] for one in found if one["regarding"]["name"] == "coredns-custom"}

    watcher.wait(lambda: {"StanzaInstalled", "StanzaMoved", "StanzaRepaired"} <= notes().keys())
    assert notes()["StanzaMoved"].startswith("the rewrite lines follow dnsproxy's table: ")
    assert notes()["StanzaRepaired"].startswith("the rewrite lines were missing or changed, and were written again: ")


def test_a_dead_dnsproxy_leaves_the_lines_and_a_service_that_is_gone_takes_them_away(tenant: Tenant) -> None:
    app, cluster = tenant.host("app"), tenant.cluster
    # Its cache would keep the Service for half a minute.
    cluster.patch("coredns", {"data": {"Corefile": TENANT.replace("    cache 30\n", "")}})
    tenant.ingress("web", app)
    tenant.wait_served(app)
    with tenant.coredns() as coredns:
        assert tenant.run("install").returncode == 0
        tenant.dnsproxy.kill()
        assert coredns.addresses(app) == [tenant.relay]
        kept = tenant.run("install", "--output", "json")
        assert (kept.returncode, json.loads(kept.stdout)["wrote"]) == (0, False), kept.stdout
        assert any("no dnsproxy gave its names, so the lines stay" in note for note in json.loads(kept.stdout)["notes"])
        delete_endpoint(cluster.server, f"{cluster.namespace}/relay")
        cluster.server.request("DELETE", f"/api/v1/namespaces/{cluster.namespace}/services/relay")
        name = f"relay.{cluster.namespace}.svc.cluster.local"
        poll_until(lambda: coredns.ask(name).rcode() == dns.rcode.NXDOMAIN, "CoreDNS lost the Service", seconds=60)
        after = tenant.run("install", "--output", "json")
        document = json.loads(after.stdout)
        assert after.returncode == 0, after.stdout + after.stderr
        assert list(document["names"]["refused"]) == [app]
        assert tenant.names() == []
        assert coredns.addresses(app) == [BY_UPSTREAM]


def test_neighbours_in_the_config_map_and_in_the_corefile_keep_what_they_have(tenant: Tenant) -> None:
    app, shop, own = map(tenant.host, ("app", "shop", "own"))
    cluster = tenant.cluster
    theirs = {
        "a.override": f"rewrite name {shop} relay.{cluster.namespace}.svc.cluster.local\n",
        "z.override": f"rewrite name exact {app} kubernetes.default.svc.cluster.local\n",
        "z.server": "not imported",
    }
    cluster.patch("coredns-custom", {"data": theirs})
    tenant.ingress("web", app, shop, own)
    tenant.wait_served(app, shop, own)
    with tenant.coredns() as coredns, lookups(coredns, own) as failed:
        there = {name: coredns.addresses(name) for name in (app, shop)}
        done = tenant.run("install", "--output", "json")
        document = json.loads(done.stdout)
        assert done.returncode == 0, done.stdout + done.stderr
        assert document["names"]["rewritten"] == [own]
        assert sorted(document["names"]["refused"]) == [app, shop]
        assert coredns.addresses(own) == [tenant.relay]
        assert {name: coredns.addresses(name) for name in (app, shop)} == there
        assert {name: text for name, text in cluster.data("coredns-custom").items() if name != KEY} == theirs
        assert tenant.run("uninstall").returncode == 0
    assert failed == []
    assert cluster.data("coredns-custom") == theirs


@contextmanager
def lookups(coredns: CoreDns, name: str) -> Iterator[list[str]]:
    """Look a name up all the time; yields the failures."""
    failed: list[str] = []
    done = threading.Event()

    def keep_asking() -> None:
        while not done.wait(0.01):
            try:
                rcode = coredns.ask(name, timeout=8).rcode()
                if rcode != dns.rcode.NOERROR:
                    failed.append(dns.rcode.to_text(rcode))
            except (dns.exception.DNSException, OSError) as error:
                failed.append(repr(error))

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        yield failed
    finally:
        done.set()
        thread.join()


def test_status_names_what_is_missing_and_what_is_no_longer_wanted(tenant: Tenant) -> None:
    app, shop = map(tenant.host, ("app", "shop"))
    cluster = tenant.cluster
    tenant.ingress("web", app)
    tenant.wait_served(app)
    with tenant.coredns():
        assert tenant.run("install").returncode == 0
        tenant.ingress("shop", shop)
        tenant.wait_served(app, shop)
        path = f"/apis/networking.k8s.io/v1/namespaces/{cluster.namespace}/ingresses/web"
        cluster.server.request("DELETE", path)
        tenant.wait_served(shop)
        done = tenant.run("status", "--output", "json")
        document = json.loads(done.stdout)
        assert done.returncode == 1
        assert document["verdict"].startswith("installed and loaded, and out of date: switchback.override in ConfigMap")
        assert (document["names"]["missing"], document["names"]["gone"]) == ([shop], [app])
        assert f"+rewrite stop name exact {shop}." in document["drift"]["diff"]
        table = tenant.run("status").stdout
        assert f"1 are rewritten; 1 missing: {shop}; 1 no longer wanted: {app}" in table
        assert tenant.run("status", "--zone", "example.net").returncode == 1
        assert tenant.run("install").returncode == 0
        assert tenant.run("status").returncode == 0


def test_too_many_names_are_counted_everywhere_and_the_lines_that_stand_stay(tenant: Tenant, tmp_path: Path) -> None:
    old = [tenant.host(f"n{number:03}") for number in range(300)]
    new = [tenant.host(f"m{number:03}") for number in range(210)]
    tenant.ingress("old", *old)
    tenant.wait_served(*old)
    with tenant.coredns() as coredns:
        assert tenant.run("install").returncode == 0
        tenant.ingress("new", *new)
        tenant.wait_served(*old, *new)
        done = tenant.run("install")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Note: 10 names are left out beyond 500 lines, such as m200." in done.stderr
        said = "rewrites 500 names to their Services; 10 more are left out beyond 500 lines"
        assert done.stdout.splitlines()[-1].endswith(said)
        assert set(old) < set(tenant.names())
        assert coredns.addresses(new[0]) == [tenant.relay]
        assert coredns.addresses(new[-1]) == [BY_UPSTREAM]
        status = tenant.run("status")
        assert status.returncode == 0
        assert "10 are left out beyond 500 lines: a wildcard host is one line for all its names" in status.stdout
        with watching(tenant.cluster, tmp_path, *tenant.places) as watcher:
            watcher.wait_ready()
            assert watcher.metrics()["dnsproxy_install_names_left_out"] == 10


def test_where_the_owner_has_the_stanza_in_place_nothing_is_added(tenant: Tenant) -> None:
    app = tenant.host("app")
    cluster = tenant.cluster
    stanza = f"    forward . {tenant.dnsproxy.endpoint} /etc/resolv.conf {{\n        policy sequential\n    }}\n"
    cluster.patch("coredns", {"data": {"Corefile": TENANT.replace("    forward .", f"{stanza}    forward .", 1)}})
    tenant.ingress("web", app)
    tenant.wait_served(app)
    there = before(tenant)
    with tenant.coredns() as coredns:
        assert coredns.addresses(app) == [tenant.relay]
        done = tenant.run("install")
        assert done.returncode == 1
        assert "the cluster's DNS asks dnsproxy already, by a configuration without Switchback's markers" in done.stderr
    assert before(tenant) == there


def test_without_a_dnsproxy_that_answers_nothing_is_written(tenant: Tenant) -> None:
    own = ["--service", f"{tenant.cluster.namespace}/dnsproxy", "--dns", f"127.0.0.1:{tenant.port}"]
    there = before(tenant)
    with tenant.coredns():
        # The pod in its EndpointSlice is at an address of documentation, which nobody has.
        done = tenant.cluster.dnsproxy("install", *own)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no dnsproxy gave the names of its table: 192.0.2.7:8081: " in done.stderr
    assert "--from names an admin port that answers here" in done.stderr
    assert before(tenant) == there
