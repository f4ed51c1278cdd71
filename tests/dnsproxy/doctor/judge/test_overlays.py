"""The overlay that the doctor names."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dnsproxy.doctor.facts.model import Class, ClusterDns
from dnsproxy.doctor.judge.overlays import backend, overlay
from dnsproxy.doctor.judge.provider import Provider
from dnsproxy.doctor.judge.provider_rows.announcers import METALLB
from dnsproxy.doctor.judge.provider_rows.hosters import DIGITAL_OCEAN, HETZNER, LINODE
from dnsproxy.doctor.judge.provider_rows.hyperscalers import AWS, AZURE, GOOGLE
from dnsproxy.doctor.judge.providers import UNKNOWN
from tests.dnsproxy.doctor.making import facts, service
from tests.kit.launched import ROOT

COREDNS: Final = ("kube-system/coredns",)
COZYSTACK: Final = (service(key="cozy-ingress-nginx/ingress-nginx-controller"),)
MICRO_K8S: Final = (service(key="ingress/ingress"),)
PUBLIC: Final = (Class("public", "k8s.io/ingress-nginx"),)

CLUSTERS: Final = {
    "k3s": (UNKNOWN, {"server_version": "v1.34.4+k3s1"}, "k3s"),
    "k3s on Hetzner": (HETZNER, {"server_version": "v1.34.4+k3s1", "provider": "k3s"}, "k3s"),
    "rke2 on Azure": (AZURE, {"server_version": "v1.34.4+rke2r1", "provider": "azure"}, "rke2"),
    "eks": (AWS, {"server_version": "v1.34.4-eks-3025e55", "provider": "aws"}, "eks"),
    "eks, unknown version": (AWS, {"server_version": "", "provider": "aws"}, "eks"),
    "kops": (AWS, {"server_version": "v1.34.4", "provider": "aws"}, "kubeadm"),
    "gke": (GOOGLE, {"server_version": "v1.34.4-gke.100"}, "gke"),
    "aks": (AZURE, {"provider": "azure"}, "aks"),
    "aks, by its nodes": (UNKNOWN, {"provider": "azure"}, "aks"),
    "aks, by its load balancer": (AZURE, {}, "aks"),
    "hetzner": (HETZNER, {"provider": "hcloud"}, "hetzner"),
    "hetzner with metallb": (METALLB, {"provider": "hrobot"}, "hetzner"),
    "digitalocean": (DIGITAL_OCEAN, {}, "digitalocean"),
    "the nodes before the load balancer": (DIGITAL_OCEAN, {"provider": "hcloud"}, "hetzner"),
    "kubespray": (UNKNOWN, {"dns": ClusterDns(decides=("kube-system/nodelocaldns",))}, "kubespray"),
    "kubespray on Azure": (
        AZURE, {"provider": "azure", "dns": ClusterDns(decides=("kube-system/nodelocaldns",))}, "kubespray"
    ),
    "node-local-dns of Kubernetes": (UNKNOWN, {"dns": ClusterDns(decides=("kube-system/node-local-dns",))}, "kubeadm"),
    "cozystack, host": (UNKNOWN, {"services": COZYSTACK, "dns": ClusterDns(decides=COREDNS)}, "cozystack-host"),
    "cozystack, tenant": (
        UNKNOWN,
        {"services": COZYSTACK, "dns": ClusterDns(decides=(*COREDNS, "kube-system/coredns-custom"))},
        "cozystack-tenant",
    ),
    "cozystack, dns unread": (UNKNOWN, {"services": COZYSTACK, "dns": ClusterDns()}, "kubeadm"),
    "microk8s": (UNKNOWN, {"services": MICRO_K8S, "classes": PUBLIC}, "microk8s"),
    "a Service of that name": (UNKNOWN, {"services": MICRO_K8S}, "kubeadm"),
    "a class of that name": (UNKNOWN, {"classes": PUBLIC}, "kubeadm"),
    "a provider without an overlay": (LINODE, {"provider": "linode"}, "kubeadm"),
    "nothing": (UNKNOWN, {"dns": None, "server_version": ""}, "kubeadm"),
}  # fmt: skip


@pytest.mark.parametrize(("provider", "fields", "expected"), CLUSTERS.values(), ids=list(CLUSTERS))
def test_an_overlay_follows_from_what_the_facts_show(provider: Provider, fields: dict[str, Any], expected: str) -> None:
    assert overlay(facts(**fields), provider) == expected


def test_every_overlay_is_named_except_one_that_nothing_shows() -> None:
    folders = {folder.name for folder in (ROOT / "deploy" / "overlays").iterdir()}
    # The facts show nothing of Talos; its overlay has the same objects as kubeadm.
    assert {expected for _, _, expected in CLUSTERS.values()} == folders - {"talos"}


@pytest.mark.parametrize(("provider", "fields", "expected"), CLUSTERS.values(), ids=list(CLUSTERS))
def test_the_relay_of_the_folder_has_the_backend(provider: Provider, fields: dict[str, Any], expected: str) -> None:
    texts = [ROOT / "deploy" / folder / "kustomization.yaml" for folder in (f"overlays/{expected}", "base")]
    routes = (line for file in texts for line in file.read_text().splitlines() if "- PROXY_ROUTE=" in line)
    namespace, name = backend(facts(**fields), provider).split("/")
    assert f"PROXY_ROUTE=8080={name}.{namespace}.svc:80 " in next(routes)
