"""Each overlay's installer with its own token, on that distribution's cluster DNS: install, uninstall, no more.

An overlay is a folder of deploy/overlays; `k3s+installer-watch` is an overlay with an additional component.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deploy.calls import ALLOWED, account, parse_call
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, Manifest, compose, pod_templates, render, settings_of
from tests.deploy.putting import put, take_away
from tests.kit.apiserver import ApiServer
from tests.kit.manifest_cluster import manifests as objects_of
from tests.kit.watching import watching

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

STAYING: Final = [
    ("kubeadm", "kubeadm"),
    ("kubeadm", "eks-self-managed"),
    ("kubeadm+stub-domains", "kubeadm-nodelocal"),
    ("talos", "talos"),
    ("k3s", "k3s"),
    ("k3s", "k3s-2025"),
    ("aks", "aks"),
    ("digitalocean", "doks"),
    ("gke", "gke"),
    ("gke", "gke-kube-dns"),
    ("kubespray", "kubespray"),
    ("microk8s", "microk8s"),
]
"""An overlay, and a cluster that it is for."""

WATCHED: Final = [("talos", "talos"), ("k3s", "k3s"), ("gke", "gke"), ("kubespray", "kubespray")]
"""One overlay of each method, and one whose names differ: the installer as it runs in the cluster."""

JOBS: Final = [("kubeadm+installer-job", "kubeadm"), ("gke+installer-job", "gke")]
"""An overlay whose installer is a Job."""

TWICE: Final = [("kubeadm", "kubeadm"), ("k3s", "k3s"), ("gke", "gke")]
"""One overlay of each method, in which a second run must change nothing."""

PRINTED: Final = [
    ("eks", "eks-addon"),
    ("rke2", "rke2"),
    ("rke2", "rke2-nodelocal"),
    ("cozystack-tenant", "cozystack"),
]
"""An overlay whose installer writes nothing, because the DNS has an owner."""

RIGHTS: Final = frozenset({"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
ALIKE: Final = [
    ("hetzner", "kubeadm"),
    ("microk8s", "kubeadm"),
    ("cozystack-host", "talos"),
    ("cozystack-tenant", "eks"),
]
"""Overlays whose accounts have the same rights, so that testing one is enough."""

CONFIG_MAPS: Final = ("coredns", "coredns-custom", "kube-dns", "node-local-dns")
OF_KUBESPRAY: Final = ("coredns", "nodelocaldns")

REFUSED: Final = """
list secrets
get secrets any in kube-system
list configmaps in kube-system
get configmaps extension-apiserver-authentication in kube-system
patch configmaps kubeadm-config in kube-system
patch configmaps kube-proxy in kube-system
update configmaps coredns in kube-system
delete configmaps coredns in kube-system
deletecollection configmaps in kube-system
patch deployments coredns in kube-system
delete deployments coredns in kube-system
patch services kube-dns in kube-system
create pods in kube-system
create pods in switchback
create pods/exec any in kube-system
list pods
patch ingresses any in default
watch ingresses
create roles in kube-system
patch roles switchback-installer-writing in kube-system
create clusterrolebindings
create serviceaccounts/token installer in switchback
list services in kube-system
list nodes
patch configmaps any in switchback
patch deployments dnsproxy in switchback
list events in kube-system
list events in switchback
watch services in kube-system
watch configmaps in kube-system
watch configmaps kubeadm-config in kube-system
""".strip().splitlines()


def followed(overlay: str) -> list[str]:
    """The calls of an installer that stays, which a Job does not make."""
    service, names = ("coredns", OF_KUBESPRAY) if overlay == "kubespray" else ("kube-dns", CONFIG_MAPS)
    return [
        *(f"{verb} configmaps {name} in kube-system" for verb in ("list", "watch") for name in names),
        *(f"{verb} services {service} in kube-system" for verb in ("list", "watch")),
        *(f"{verb} services dnsproxy in switchback" for verb in ("list", "watch")),
        *(
            f"watch {kind} in {namespace}"
            for kind in ("deployments", "daemonsets")
            for namespace in ("kube-system", "switchback")
        ),
        "watch endpointslices in switchback",
        "create events in kube-system",
    ]


@dataclass(frozen=True)
class Cluster:
    """A cluster with DNS and an applied overlay."""

    server: ApiServer
    kubeconfig: Path
    settings: dict[str, str]
    """The settings of the installer's pod."""
    pair: tuple[str, str]
    namespace: str = "switchback"
    """The settings of dnsproxy."""

    def command_line(self, command: str, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        """A command of ours with the installer's account."""
        where = ["--kubeconfig", str(kubeconfig or self.kubeconfig)]
        where += [] if command == "status" else ["--timeout", "0"]
        return [sys.executable, "-m", "dnsproxy", command, *where, *arguments]

    def run(self, *words: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command until it ends, with the installer's account or another."""
        environment = {**os.environ, **self.settings, "NO_COLOR": "1"}
        command = self.command_line(*words, kubeconfig=kubeconfig)
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def may(self, *calls: str) -> list[str]:
        """The calls among these that the installer may make."""
        installer = account(self.server, "switchback", "installer")
        return [call for call in calls if installer.verdict(parse_call(call)) == ALLOWED]

    def events(self, namespace: str = "kube-system") -> set[str]:
        """The reasons of the Events in a namespace, by default that of the cluster's DNS."""
        found = self.server.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        return {one["reason"] for one in found}

    def config_maps(self) -> dict[str, Any]:
        """The contents of all ConfigMaps in the DNS's namespace, with their annotations."""
        found = self.server.request("GET", "/api/v1/namespaces/kube-system/configmaps")["items"]
        return {
            one["metadata"]["name"]: (
                one.get("data"),
                one["metadata"].get("annotations"),
                one["metadata"].get("labels"),
            )
            for one in found
        }


@pytest.fixture(scope="module")
def cluster(
    bare: ApiServer, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    server, (overlay, distribution) = bare, request.param
    folder = tmp_path_factory.mktemp("installer")
    manifests = render(kustomization(overlay, folder))
    put(server, [one for one in manifests if one["kind"] in {"Namespace", "Service", "Deployment", *RIGHTS}])
    server.request("PATCH", SLICE, ready_slice(), content_type="application/apply-patch+yaml")
    objects = [without_addresses(one) for one in objects_of(distribution)]
    for one in objects:
        # Written as by its owner: content that kubectl writes counts as a person's.
        path = f"{PATHS[one['kind']]}?fieldManager={distribution}-{next(numbers)}"
        server.request("POST", path, one)
    server.create_ingress("shop", ["shop.example.org"])
    names = {"dnsproxy-install", "dnsproxy-print"}
    template = next(pod for workload, pod in pod_templates(manifests) if workload["metadata"]["name"] in names)
    config = account(server, "switchback", "installer").write_kubeconfig(folder / "kubeconfig")
    try:
        yield Cluster(server, config, settings_of(manifests, template), (overlay, distribution))
    finally:
        server.delete_all_ingresses()
        for namespace in ("kube-system", "switchback"):
            server.request("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        for one in objects:
            server.request("DELETE", f"{PATHS[one['kind']]}/{one['metadata']['name']}")
        # Otherwise the next account would have the rights of this one.
        take_away(server, [one for one in manifests if one["kind"] in RIGHTS])


def on(pairs: Sequence[tuple[str, str]]) -> pytest.MarkDecorator:
    """One test for each of these overlays and clusters."""
    return pytest.mark.parametrize("cluster", pairs, indirect=True, ids="-on-".join, scope="module")


@on([*STAYING, *JOBS])
def test_it_installs_and_takes_out_with_its_own_rights(cluster: Cluster) -> None:
    before, times = cluster.config_maps(), 2 if cluster.pair in TWICE else 1
    for _ in range(times):
        installed = cluster.run("install")
        assert installed.returncode == 0, installed.stderr
    assert cluster.config_maps() != before
    for _ in range(times):
        removed = cluster.run("uninstall")
        assert removed.returncode == 0, removed.stderr
    assert cluster.config_maps() == before


@pytest.mark.parametrize("pair", ALIKE, ids="-as-".join)
def test_what_is_not_asked_has_the_rights_of_one_that_is(pair: tuple[str, str]) -> None:
    one, other = (
        [manifest for manifest in render(DEPLOY / "overlays" / name) if manifest["kind"] in RIGHTS] for name in pair
    )
    assert one == other


@on([*STAYING, *JOBS, *PRINTED])
def test_it_may_do_nothing_else(cluster: Cluster) -> None:
    assert cluster.may(*REFUSED) == []


@on([*STAYING, *JOBS])
def test_it_writes_one_config_map_alone(cluster: Cluster) -> None:
    # kubespray's pods ask a cache or CoreDNS, by a setting of the playbook.
    wanted = list(OF_KUBESPRAY) if cluster.pair[0] == "kubespray" else 1
    names = dict.fromkeys([*CONFIG_MAPS, *OF_KUBESPRAY])
    allowed = [name for name in names if cluster.may(f"patch configmaps {name} in kube-system")]
    assert (allowed if isinstance(wanted, list) else len(allowed)) == wanted


@on(WATCHED)
def test_one_that_stays_installs_and_repairs_with_its_own_rights(cluster: Cluster, tmp_path: Path) -> None:
    before = cluster.config_maps()
    named = cluster.settings.get("DNSPROXY_DNS_SERVICE")
    with watching(cluster, tmp_path, *(["--dns-service", named] if named else [])) as watcher:
        watcher.wait_ready()
        installed = cluster.config_maps()
        assert installed != before
        for name in before:
            if before[name][0] != installed[name][0]:
                replace_data(cluster.server, name, before[name][0] or {})
        for name in installed.keys() - before.keys():
            cluster.server.request("DELETE", f"{PATHS['ConfigMap']}/{name}")
        watcher.wait(lambda: cluster.config_maps() == installed)
        watcher.wait(lambda: {"StanzaInstalled", "StanzaRepaired"} <= cluster.events())
        assert not [one for one in watcher.lines("retrying") if one["cause"] == "forbidden"]
        assert watcher.lines("cannot make an Event") == []
        assert watcher.terminate() == 0
    removed = cluster.run("uninstall")
    assert (removed.returncode, cluster.config_maps()) == (0, before), removed.stderr


@on([("kubeadm+installer-job", "kubeadm")])
def test_the_reason_of_a_failed_job_outlives_it(cluster: Cluster) -> None:
    server, ready = cluster.server, ready_slice()
    not_ready = {**ready, "endpoints": [{"addresses": ["10.244.0.9"], "conditions": {"ready": False}}]}
    server.request("PATCH", SLICE, not_ready, content_type="application/apply-patch+yaml")
    try:
        failed = cluster.run("install", "--events")
    finally:
        server.request("PATCH", SLICE, ready, content_type="application/apply-patch+yaml")
    assert failed.returncode == 1, failed.stderr
    described = kubectl(server, "-n", "switchback", "describe", "service", "dnsproxy")
    assert "StanzaRefused" in described, failed.stderr
    shown = json.loads(cluster.run("status", "--output", "json", kubeconfig=server.kubeconfig).stdout)
    assert (shown["event"]["reason"], shown["event"]["warns"]) == ("StanzaRefused", True)
    assert shown["event"]["note"] in failed.stderr
    assert cluster.run("install", "--events").returncode == 0
    shown = json.loads(cluster.run("status", "--output", "json", kubeconfig=server.kubeconfig).stdout)
    assert (shown["event"]["reason"], shown["event"]["warns"]) == ("StanzaInstalled", False)
    assert cluster.run("uninstall").returncode == 0


@on(STAYING)
def test_one_that_stays_may_follow_what_it_reads(cluster: Cluster) -> None:
    calls = followed(cluster.pair[0])
    assert cluster.may(*calls) == calls


@on([*JOBS, *PRINTED])
def test_one_that_ends_may_not_follow_anything(cluster: Cluster) -> None:
    assert cluster.may(*followed(cluster.pair[0])) == []


@on([("kubeadm", "kubeadm-nodelocal")])
def test_a_missing_right_is_named_with_the_method_that_needs_it(cluster: Cluster) -> None:
    installed = cluster.run("install")
    assert installed.returncode == 3
    assert "not allowed to create configmaps kube-dns in namespace kube-system" in installed.stderr
    assert "the method stub-domains needs it" in installed.stderr
    assert "--method print" in installed.stderr


@on([("kubeadm", "kubespray")])
def test_a_service_with_another_name_is_asked_for_by_its_flag(cluster: Cluster) -> None:
    installed = cluster.run("install")
    assert installed.returncode == 3
    assert "name the Service that pods ask with --dns-service, such as kube-system/coredns" in installed.stderr


@on(PRINTED)
def test_it_prints_for_the_owner_and_writes_nothing(cluster: Cluster) -> None:
    before = cluster.config_maps()
    printed = cluster.run("install", "--method", "print")
    assert printed.returncode == 0, printed.stderr
    service = cluster.server.request("GET", "/api/v1/namespaces/switchback/services/dnsproxy")
    assert service["spec"]["clusterIP"] in printed.stdout
    assert "goes into: " in printed.stderr
    assert cluster.config_maps() == before
    verbs = ("patch", "update", "create", "delete")
    assert cluster.may(*(f"{verb} configmaps {name} in kube-system" for verb in verbs for name in CONFIG_MAPS)) == []


def kustomization(overlay: str, folder: Path) -> Path:
    """The folder to apply: the overlay's, or one in `folder` with additional components."""
    name, *more = overlay.split("+")
    base = DEPLOY / "overlays" / name
    return compose(folder, with_components=[DEPLOY / "components" / one for one in more], base=base) if more else base


def replace_data(server: ApiServer, name: str, data: dict[str, str]) -> None:
    """Write a ConfigMap as its owner does when it renders it again."""
    path = f"{PATHS['ConfigMap']}/{name}"
    server.request("PUT", path, {**server.request("GET", path), "data": data})


numbers = itertools.count()
SLICE: Final = "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices/dnsproxy-1?fieldManager=test&force=true"
PATHS: Final = {
    "Service": "/api/v1/namespaces/kube-system/services",
    "ConfigMap": "/api/v1/namespaces/kube-system/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/kube-system/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/kube-system/daemonsets",
}


def ready_slice() -> Manifest:
    """The objects that the controllers would create for a ready dnsproxy."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "dnsproxy-1", "labels": {"kubernetes.io/service-name": "dnsproxy"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.244.0.9"], "conditions": {"ready": True}}],
        "ports": [{"name": "dns", "port": 1053, "protocol": "UDP"}],
    }


def without_addresses(manifest: Manifest) -> Manifest:
    """The object in a form for any API server, whose Services have addresses of its own range."""
    made: dict[str, Any] = json.loads(json.dumps(manifest))
    for key in ("resourceVersion", "managedFields"):
        made["metadata"].pop(key, None)
    if made["kind"] == "Service":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if made["spec"].get(key) not in ("None", ["None"]):
                made["spec"].pop(key, None)
    return made
