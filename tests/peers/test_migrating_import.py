"""From ouroboros in mode `coredns-import`: its key of `coredns-custom` beside ours, in one real CoreDNS.

Its controller is played, by what it writes (tests/kit/other_tools.py); its cleanup is a merge patch of its one key.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kit.apiserver import ApiServer
from tests.kit.coredns import answering, running_coredns
from tests.kit.living_dns import living_cluster
from tests.kit.manifest_cluster import Manifest
from tests.kit.other_tools import OUROBOROS, ouroboros_key
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.serve_process import serving
from tests.peers.test_install_apiserver import Scene, bare, cluster, k3s
from tests.peers.test_migrating import (
    BY_DNSPROXY,
    BY_THEIRS,
    BY_UPSTREAM,
    FRESH,
    HOST,
    asked_without_a_pause,
    settled,
)
from tests.peers.test_rewrites_apiserver import BY_UPSTREAM as TENANT_UPSTREAM
from tests.peers.test_rewrites_apiserver import Tenant, tenant

__all__ = ["cluster", "tenant"]

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "coredns"), pytest.mark.timeout(400)]

KEY: Final = "ouroboros.override"


@pytest.fixture
def scene(apiserver: ApiServer, tmp_path: Path) -> Iterator[Scene]:
    with living_cluster(apiserver, tmp_path) as cluster, running_coredns(tmp_path, answering(BY_UPSTREAM)) as upstream:
        hosts = [word for one in (HOST, FRESH) for word in ("--host", f"{one}={BY_DNSPROXY}")]
        with serving(tmp_path, *hosts, "--upstream", f"127.0.0.1:{upstream.port}") as dnsproxy:
            yield Scene(cluster, dnsproxy, upstream, free_port())


def importing(data: dict[str, str]) -> list[Manifest]:
    """k3s, with the ConfigMap that it imports, and an address for the Service of theirs."""
    objects = k3s()
    (made,) = [one["data"] for one in objects if one["metadata"]["name"] == "coredns" and one["kind"] == "ConfigMap"]
    hosts = f"    hosts {{\n        {BY_THEIRS} {OUROBOROS}\n        fallthrough\n    }}\n"
    made["Corefile"] = made["Corefile"].replace("    errors\n", f"    errors\n{hosts}").replace("cache 30", "cache 1")
    custom: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns-custom"}}
    return [*(one for one in objects if one["metadata"]["name"] != "coredns-custom"), {**custom, "data": data}]


def test_our_zones_answer_at_once_and_neither_key_touches_the_other(scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(importing({"people.override": "log\n", KEY: ouroboros_key([HOST])}), manager="test")
    cluster.create_own_service()
    zone = ["--zone", "example.org"]
    with scene.coredns() as coredns:
        settled(coredns, BY_THEIRS, BY_UPSTREAM, BY_UPSTREAM)
        before = bare(cluster.config_map("coredns-custom"))
        with asked_without_a_pause(coredns) as seen:
            installed = scene.run("install", *zone)
            assert installed.returncode == 0, installed.stdout + installed.stderr
            # The stanza is a server block of the zone, which the rewrites in the root block do not reach.
            settled(coredns, BY_DNSPROXY, BY_DNSPROXY, BY_UPSTREAM)
            ours = cluster.data("coredns-custom")["switchback.server"]
            # Their controller looks again, and has another host.
            more = ouroboros_key([HOST, "more.example.org"])
            cluster.patch("coredns-custom", {"data": {KEY: more}})
            again = scene.run("install", *zone)
            assert again.returncode == 0, again.stderr
            assert cluster.data("coredns-custom") == {"people.override": "log\n", KEY: more, "switchback.server": ours}
            cluster.patch("coredns-custom", {"data": {KEY: None}})
            settled(coredns, BY_DNSPROXY, BY_DNSPROXY, BY_UPSTREAM)
            poll_until(lambda: BY_DNSPROXY in seen, "a lookup after the change", seconds=10)
        assert set(seen) == {BY_THEIRS, BY_DNSPROXY}
        assert cluster.data("coredns-custom") == {"people.override": "log\n", "switchback.server": ours}
        # The same again with theirs still there.
        cluster.patch("coredns-custom", {"data": {KEY: ouroboros_key([HOST])}})
        removed = scene.run("uninstall")
        assert removed.returncode == 0, removed.stderr
        settled(coredns, BY_THEIRS, BY_UPSTREAM, BY_UPSTREAM)
    assert bare(cluster.config_map("coredns-custom")) == before


def test_in_a_tenant_theirs_keep_their_hosts_until_their_key_goes(tenant: Tenant) -> None:
    cluster, app, fresh = tenant.cluster, tenant.host("app"), tenant.host("fresh")
    spec = {"ports": [{"name": "https", "port": 443}], "selector": {"app": "theirs"}}
    service = {"metadata": {"name": "ouroboros-proxy"}, "spec": spec}
    made = cluster.server.request("POST", f"/api/v1/namespaces/{cluster.namespace}/services", service)
    by_theirs = made["spec"]["clusterIP"]
    key = ouroboros_key([app]).replace(".ouroboros.svc", f".{cluster.namespace}.svc")
    cluster.patch("coredns-custom", {"data": {KEY: key}})
    tenant.ingress("web", app, fresh)
    tenant.wait_served(app, fresh)

    def answer(*wanted: str) -> None:
        def look() -> list[str]:
            return [coredns.addresses(name)[-1] for name in (app, fresh)]

        poll_until(lambda: look() == list(wanted), f"the answers {wanted}", seconds=60)

    with tenant.coredns() as coredns:
        answer(by_theirs, TENANT_UPSTREAM)
        installed = tenant.run("install")
        assert installed.returncode == 0, installed.stdout + installed.stderr
        assert f"left out: {app}: rewrite (ouroboros.override in ConfigMap" in installed.stderr
        answer(by_theirs, tenant.relay)
        ours = tenant.key()
        cluster.patch("coredns-custom", {"data": {KEY: None}})
        assert tenant.key() == ours
        answer(TENANT_UPSTREAM, tenant.relay)
        # operate does that when it looks again.
        assert tenant.run("install").returncode == 0
        answer(tenant.relay, tenant.relay)
        assert set(tenant.names()) == {app, fresh}
