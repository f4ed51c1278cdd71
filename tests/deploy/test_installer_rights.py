"""The installer of each overlay, with its own token, on the cluster DNS of that distribution: in, out, no more."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deploy.calls import FORBIDDEN, account, parse_call
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, Manifest
from tests.dnsproxy.install.discover.cluster import manifests as objects_of
from tests.peers.apiserver import ApiServer, running_apiserver

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl")

PAIRS: Final = [
    ("kubeadm", "kubeadm"),
    ("kubeadm", "eks-self-managed"),
    ("hetzner", "kubeadm"),
    ("talos", "talos"),
    ("cozystack-host", "talos"),
    ("k3s", "k3s"),
    ("k3s", "k3s-2025"),
    ("aks", "aks"),
    ("digitalocean", "doks"),
    ("gke", "gke"),
    ("gke", "gke-kube-dns"),
]
"""An overlay and a cluster that it is for."""

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
""".strip().splitlines()


@dataclass(frozen=True)
class Cluster:
    """A cluster with a DNS and an overlay applied."""

    server: ApiServer
    objects: list[Manifest]
    kubeconfig: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of ours as the installer."""
        command = [sys.executable, "-m", "dnsproxy", *words, "--timeout", "0", "--kubeconfig", str(self.kubeconfig)]
        environment = {**os.environ, "NO_COLOR": "1"}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def config_maps(self) -> dict[str, Any]:
        """What all ConfigMaps hold where the cluster's DNS is, and what is written on them."""
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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_apiserver(tmp_path_factory.mktemp("installer")) as running:
        yield running


@pytest.fixture(params=PAIRS, ids="-on-".join, scope="module")
def cluster(
    server: ApiServer, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    overlay, distribution = request.param
    objects = [without_addresses(one) for one in objects_of(distribution)]
    kubectl(server, "apply", "-k", str(DEPLOY / "overlays" / overlay))
    server.request("PATCH", SLICE, ready_slice(), content_type="application/apply-patch+yaml")
    for one in objects:
        # As its owner writes it: what kubectl writes is left to people.
        path = f"{PATHS[one['kind']]}?fieldManager={distribution}-{next(numbers)}"
        server.request("POST", path, one)
    server.create_ingress("shop", ["shop.example.org"])
    try:
        config = account(server, "switchback", "installer").write_kubeconfig(
            tmp_path_factory.mktemp("installer") / "kubeconfig"
        )
        yield Cluster(server, objects, config)
    finally:
        server.delete_all_ingresses()
        for one in objects:
            server.request("DELETE", f"{PATHS[one['kind']]}/{one['metadata']['name']}")


def test_it_installs_and_takes_out_with_its_own_rights(cluster: Cluster) -> None:
    before = cluster.config_maps()
    for _ in range(2):
        installed = cluster.run("install")
        assert installed.returncode == 0, installed.stderr
    assert cluster.config_maps() != before
    for _ in range(2):
        removed = cluster.run("uninstall")
        assert removed.returncode == 0, removed.stderr
    assert cluster.config_maps() == before


def test_it_may_do_nothing_else(cluster: Cluster) -> None:
    installer = account(cluster.server, "switchback", "installer")
    allowed = [call for call in REFUSED if installer.verdict(parse_call(call)) != FORBIDDEN]
    assert allowed == []


def test_it_writes_one_config_map_alone(cluster: Cluster) -> None:
    installer = account(cluster.server, "switchback", "installer")
    written = [
        name
        for name in ("coredns", "coredns-custom", "kube-dns", "node-local-dns")
        if installer.verdict(parse_call(f"patch configmaps {name} in kube-system")) != FORBIDDEN
    ]
    assert len(written) == 1


numbers = itertools.count()
SLICE: Final = "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices/dnsproxy-1?fieldManager=test&force=true"
PATHS: Final = {
    "Service": "/api/v1/namespaces/kube-system/services",
    "ConfigMap": "/api/v1/namespaces/kube-system/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/kube-system/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/kube-system/daemonsets",
}


def ready_slice() -> Manifest:
    """What the controllers would make of a dnsproxy that is ready."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "dnsproxy-1", "labels": {"kubernetes.io/service-name": "dnsproxy"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.244.0.9"], "conditions": {"ready": True}}],
        "ports": [{"name": "dns", "port": 1053, "protocol": "UDP"}],
    }


def without_addresses(manifest: Manifest) -> Manifest:
    """An object that any API server takes: its Services have addresses of its own range."""
    made: dict[str, Any] = json.loads(json.dumps(manifest))
    for key in ("resourceVersion", "managedFields"):
        made["metadata"].pop(key, None)
    if made["kind"] == "Service":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if made["spec"].get(key) not in ("None", ["None"]):
                made["spec"].pop(key, None)
    return made
