"""The folder under deploy/overlays that fits a cluster.

The law: only what the facts show chooses one: the version of Kubernetes, the cluster's DNS, the ingress controller's
Service, and the cloud, in this order; a cluster that shows nothing of these gets kubeadm. Tested in
tests/dnsproxy/doctor/judge/test_overlays.py.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.provider import Provider
from dnsproxy.doctor.judge.provider_rows.hosters import DIGITAL_OCEAN, HETZNER
from dnsproxy.doctor.judge.provider_rows.hyperscalers import AWS, AZURE

_DISTRIBUTIONS: Final = {"+k3s": "k3s", "+rke2": "rke2", "-eks": "eks", "-gke": "gke"}
_PROVIDERS: Final = ((HETZNER, "hetzner"), (DIGITAL_OCEAN, "digitalocean"), (AWS, "eks"), (AZURE, "aks"))
_BY_SCHEME: Final = MappingProxyType({scheme: name for provider, name in _PROVIDERS for scheme in provider.schemes})
_BY_NAME: Final = MappingProxyType({provider.name: name for provider, name in _PROVIDERS})
_KUBESPRAY_CACHE: Final = "kube-system/nodelocaldns"
"""The name is kubespray's; that of Kubernetes' own manifest is node-local-dns."""
_COZYSTACK: Final = "cozy-ingress-nginx/"
_IMPORTED: Final = "/coredns-custom"
"""The cluster that cozystack runs on has the CoreDNS of Talos, without imports; that of a tenant imports this."""
_MICRO_K8S: Final = "ingress/ingress"
_MICRO_K8S_CLASS: Final = "public"

_BACKENDS: Final = MappingProxyType(
    {
        "k3s": "kube-system/traefik",
        "rke2": "kube-system/rke2-ingress-nginx-controller",
        "microk8s": _MICRO_K8S,
        "cozystack-host": "cozy-ingress-nginx/ingress-nginx-controller",
        "cozystack-tenant": "cozy-ingress-nginx/ingress-nginx-controller",
    }
)
_BACKEND: Final = "ingress-nginx/ingress-nginx-controller"


def backend(facts: Facts, provider: Provider) -> str:
    """The Service to which the folder's relay leads connections: `NAMESPACE/NAME`."""
    return _BACKENDS.get(overlay(facts, provider), _BACKEND)


def overlay(facts: Facts, provider: Provider) -> str:
    """The name of the folder."""
    for mark, name in _DISTRIBUTIONS.items():
        if mark in facts.server_version:
            return name
    found = _by_dns(facts) or _by_ingress(facts) or _by_cloud(facts, provider)
    # EKS names itself in its version; any other cluster on AWS has a CoreDNS of its own.
    return "kubeadm" if not found or (found == "eks" and facts.server_version) else found


def _by_cloud(facts: Facts, provider: Provider) -> str:
    # The nodes say more about the cluster than one load balancer.
    return _BY_SCHEME.get(facts.provider, "") or _BY_NAME.get(provider.name, "")


def _by_dns(facts: Facts) -> str:
    decides = facts.dns.decides if facts.dns is not None else ()
    if _KUBESPRAY_CACHE in decides:
        return "kubespray"
    if decides and any(service.key.startswith(_COZYSTACK) for service in facts.services):
        return "cozystack-tenant" if any(name.endswith(_IMPORTED) for name in decides) else "cozystack-host"
    return ""


def _by_ingress(facts: Facts) -> str:
    keys, classes = {service.key for service in facts.services}, {one.name for one in facts.classes}
    return "microk8s" if _MICRO_K8S in keys and _MICRO_K8S_CLASS in classes else ""
