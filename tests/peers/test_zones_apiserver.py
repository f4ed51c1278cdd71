"""Zones from dnsproxy's own table: a real `serve`, kube-apiserver, and CoreDNS that follows the stanza."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.coredns import answering, running_coredns
from tests.kit.living_dns import LivingCluster
from tests.kit.ports import free_port
from tests.kit.serve_process import serving
from tests.kit.watching import watching
from tests.peers.test_install_apiserver import BY_DNSPROXY, BY_UPSTREAM, Scene, cluster, k3s

__all__ = ["cluster"]

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "coredns"), pytest.mark.timeout(400)]


def stanza(cluster: LivingCluster) -> str:
    return cluster.data("coredns-custom").get("switchback.server", "")


def test_a_host_of_a_new_domain_is_asked_for_and_a_server_that_is_away_takes_no_zone_away(
    cluster: LivingCluster, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{BY_DNSPROXY} app.example.org\n")
    with running_coredns(tmp_path, answering(BY_UPSTREAM)) as upstream:
        given = ["--hosts-file", str(hosts), "--upstream", f"127.0.0.1:{upstream.port}"]
        with serving(tmp_path, *given) as dnsproxy:
            scene = Scene(cluster, dnsproxy, upstream, free_port())
            cluster.create(k3s(), manager="test")
            cluster.create_own_service()
            arguments = ["--from", dnsproxy.admin, "--dns", f"127.0.0.1:{scene.port}"]
            with scene.coredns() as coredns, watching(cluster, tmp_path, *arguments) as watcher:
                watcher.wait_ready()
                assert coredns.addresses("app.example.org") == [BY_DNSPROXY]
                assert coredns.addresses("app.example.net") == [BY_UPSTREAM]
                hosts.write_text(f"{BY_DNSPROXY} app.example.org\n{BY_DNSPROXY} app.example.net\n")
                watcher.wait(lambda: "example.net" in stanza(cluster))
                watcher.wait(lambda: coredns.addresses("app.example.net") == [BY_DNSPROXY])
                # A stanza that grows is not one that another writer has undone.
                assert watcher.metrics()["dnsproxy_install_undone_total"] == 0
                dnsproxy.hang()
                watcher.wait(lambda: bool(watcher.lines("dnsproxy gives no zones, and those of the stanza stay")))
                assert {"example.org", "example.net"} <= set(stanza(cluster).replace(":53", " ").split())
                dnsproxy.resume()
                watcher.wait(lambda: bool(watcher.lines("dnsproxy gives its zones again")))
                assert len(watcher.lines("dnsproxy gives no zones, and those of the stanza stay")) == 1


def test_an_install_without_a_flag_asks_the_pods_and_says_so_if_none_answers(
    cluster: LivingCluster,
) -> None:
    cluster.create(k3s(), manager="test")
    cluster.create_own_service()
    spec = {
        "rules": [{"host": "app.example.org"}],
        "defaultBackend": {"service": {"name": "w", "port": {"number": 80}}},
    }
    cluster.create([{"kind": "Ingress", "metadata": {"name": "web"}, "spec": spec}])
    own = ["--service", f"{cluster.namespace}/dnsproxy"]
    done = cluster.dnsproxy("install", *own, "--dry-run", "--output", "json")
    document = json.loads(done.stdout)
    assert document["zones_from"] == "the hosts of the cluster's Ingresses"
    assert any("no dnsproxy gave its zones" in note for note in document["notes"]), document
