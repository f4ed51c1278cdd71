"""`dnsproxy install --watch` against a real kube-apiserver and a real CoreDNS that follows its ConfigMaps."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.kit.apiserver import running_apiserver
from tests.kit.coredns import answering, running_coredns
from tests.kit.living_dns import LivingCluster, living_cluster
from tests.kit.ports import free_port
from tests.kit.serve_process import serving
from tests.kit.watching import Watching, watching
from tests.peers.test_install_apiserver import (
    BY_DNSPROXY,
    BY_UPSTREAM,
    COREFILE,
    NAME,
    Scene,
    cluster,
    k3s,
    kubeadm,
    lookups,
    rendering_again,
    scene,
)

__all__ = ["cluster", "scene"]

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "coredns"), pytest.mark.timeout(400)]


def stanzas(cluster: LivingCluster) -> int:
    return cluster.data("coredns")["Corefile"].count("BEGIN switchback")


def render_again(cluster: LivingCluster) -> None:
    """The owner writes its own content once."""
    cluster.patch("coredns", {"data": {"Corefile": COREFILE}}, manager="kubeadm")


def events(cluster: LivingCluster) -> list[Any]:
    path = f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events"
    return [one for one in cluster.server.request("GET", path)["items"] if one["regarding"]["kind"] == "ConfigMap"]


def dns(scene: Scene) -> list[str]:
    return ["--dns", f"127.0.0.1:{scene.port}"]


def rights(scene: Scene, *arguments: str) -> Path:
    """The kubeconfig of an account with exactly the rights that `--dry-run` prints."""
    document = json.loads(scene.run("install", "--dry-run", "--output", "json", *arguments).stdout)
    return scene.cluster.kubeconfig([*document["rbac"], *document["rbac_watch"]])[0]


@pytest.mark.parametrize(
    ("make", "arguments"), [(kubeadm, []), (k3s, ["--zone", "example.org"])], ids=["corefile", "import"]
)
def test_it_installs_repairs_and_leaves_the_stanza_at_its_end_with_the_printed_rights_alone(
    make: Any, arguments: list[str], scene: Scene, tmp_path: Path
) -> None:
    cluster = scene.cluster
    cluster.create(make(), manager="kubeadm")
    cluster.create_own_service()
    kubeconfig = rights(scene, *arguments)
    written = "coredns" if make is kubeadm else "coredns-custom"
    key = "Corefile" if make is kubeadm else "switchback.server"
    with (
        scene.coredns() as coredns,
        watching(cluster, tmp_path, *dns(scene), *arguments, kubeconfig=kubeconfig) as watcher,
    ):
        watcher.wait_ready()
        assert coredns.addresses(NAME) == [BY_DNSPROXY]
        installed = cluster.data(written)
        cluster.patch(written, {"data": {key: COREFILE if make is kubeadm else None}})
        watcher.wait(lambda: cluster.data(written) == installed)
        watcher.wait(lambda: watcher.metrics()["dnsproxy_install_repairs_total"] == 1)
        watcher.wait(lambda: {one["reason"] for one in events(cluster)} == {"StanzaInstalled", "StanzaRepaired"})
        assert watcher.metrics()["dnsproxy_install_undone_total"] == 1
        assert not [one for one in watcher.lines("retrying") if one["cause"] == "forbidden"]
        watcher.wait_ready()
        assert watcher.terminate() == 0
        assert cluster.data(written) == installed
        assert "switchback" in installed[key]


def test_an_owner_that_renders_every_second_costs_no_lookup_and_the_stanza_stands_at_the_end(
    scene: Scene, tmp_path: Path
) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm(), manager="talos")
    cluster.create_own_service()
    with scene.coredns() as coredns, watching(cluster, tmp_path, *dns(scene)) as watcher:
        watcher.wait_ready()
        with lookups(coredns) as failed, rendering_again(cluster, every=1.0):
            # It stops writing at once, and logs the reason.
            watcher.wait(lambda: bool(watcher.lines("undone")))
        assert failed == []
        watcher.wait(lambda: stanzas(cluster) == 1)
        watcher.wait_ready()
        assert coredns.addresses(NAME) == [BY_DNSPROXY]
        warnings = {one["reason"] for one in events(cluster) if one["type"] == "Warning"}
        assert "StanzaUndone" in warnings


def test_the_stanza_follows_a_recreated_service(scene: Scene, tmp_path: Path) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm())
    before = cluster.create_own_service()
    services = f"/api/v1/namespaces/{cluster.namespace}/services"
    with watching(cluster, tmp_path, "--timeout", "0") as watcher:
        watcher.wait_ready()
        assert f"forward . {before} " in cluster.data("coredns")["Corefile"]
        service = cluster.server.request("GET", f"{services}/dnsproxy")
        cluster.server.request("DELETE", f"{services}/dnsproxy")
        watcher.wait(lambda: bool(watcher.lines("refused")))
        # No server answers there, and CoreDNS asks the second upstream: better than an uninstalled stanza.
        assert stanzas(cluster) == 1
        spec = {"selector": service["spec"]["selector"], "ports": service["spec"]["ports"]}
        made = cluster.server.request("POST", services, {"metadata": {"name": "dnsproxy"}, "spec": spec})
        after = made["spec"]["clusterIP"]
        watcher.wait(lambda: f"forward . {after} " in cluster.data("coredns")["Corefile"])
        watcher.wait_ready()
        assert after != before
        assert (stanzas(cluster), before in cluster.data("coredns")["Corefile"]) == (1, False)
        assert watcher.metrics()["dnsproxy_install_undone_total"] == 0


def test_two_watchers_at_once_end_quiet_with_one_stanza(scene: Scene, tmp_path: Path) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm(), manager="kubeadm")
    cluster.create_own_service()
    with ExitStack() as stack:
        both = [stack.enter_context(watching(cluster, tmp_path, "--timeout", "0")) for _ in range(2)]
        for watcher in both:
            watcher.wait_ready()
        for _ in range(2):
            render_again(cluster)
            both[0].wait(lambda: stanzas(cluster) == 1)
        # Both check once more because the workload changed, and neither writes.
        for watcher in both:
            wait_for_a_look(watcher, cluster)
        version = cluster.config_map("coredns")
        for watcher in both:
            wait_for_a_look(watcher, cluster)
        assert cluster.config_map("coredns") == version
        assert stanzas(cluster) == 1
        assert all(watcher.terminate() == 0 for watcher in both)


def wait_for_a_look(watcher: Watching, cluster: LivingCluster) -> None:
    """Change the DNS's Deployment, and wait until the watcher has checked it without findings."""
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/coredns"
    before = watcher.metrics()["dnsproxy_install_look_timestamp_seconds"]
    patch = {"metadata": {"annotations": {"touched": str(before)}}}
    cluster.server.request("PATCH", path, patch, content_type="application/merge-patch+json")
    watcher.wait(lambda: watcher.metrics()["dnsproxy_install_look_timestamp_seconds"] > before)
    watcher.wait_ready()


@pytest.fixture
def own_scene(tmp_path: Path) -> Iterator[Scene]:
    """A scene with a separate API server, which the test may end."""
    with (
        running_apiserver(tmp_path) as server,
        living_cluster(server, tmp_path) as cluster,
        running_coredns(tmp_path, answering(BY_UPSTREAM)) as upstream,
    ):
        host = ["--host", f"{NAME}={BY_DNSPROXY}", "--upstream", f"127.0.0.1:{upstream.port}"]
        with serving(tmp_path, *host) as dnsproxy:
            yield Scene(cluster, dnsproxy, upstream, free_port())


def test_an_api_server_that_is_away_changes_nothing_and_all_goes_on_when_it_is_back(
    own_scene: Scene, tmp_path: Path
) -> None:
    cluster, server = own_scene.cluster, own_scene.cluster.server
    cluster.create(kubeadm(), manager="kubeadm")
    cluster.create_own_service()
    with watching(cluster, tmp_path, "--timeout", "0") as watcher:
        watcher.wait_ready()
        installed = cluster.data("coredns")
        server.kill()
        watcher.wait(lambda: bool(watcher.lines("retrying")))
        assert watcher.ready()
        server.start()
        assert cluster.data("coredns") == installed
        render_again(cluster)
        watcher.wait(lambda: stanzas(cluster) == 1)
        watcher.wait_ready()
        assert cluster.data("coredns") == installed


def test_an_api_server_that_is_away_at_the_start_is_waited_for_until_a_signal(own_scene: Scene, tmp_path: Path) -> None:
    cluster, server = own_scene.cluster, own_scene.cluster.server
    cluster.create(kubeadm())
    cluster.create_own_service()
    server.kill()
    with watching(cluster, tmp_path, "--timeout", "0") as watcher, watching(cluster, tmp_path) as ending:
        ending.wait(lambda: bool(ending.lines("unknown")))
        watcher.wait(lambda: bool(watcher.lines("unknown")))
        assert not watcher.ready()
        assert ending.terminate() == 0
        starting = threading.Thread(target=server.start)
        starting.start()
        watcher.wait_ready()
        starting.join()
        assert stanzas(cluster) == 1
