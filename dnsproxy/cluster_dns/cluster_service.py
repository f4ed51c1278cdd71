"""Cluster Service: the Service that pods are told to ask for DNS.

The law: the one that was named, or `kube-system/kube-dns`; where that is absent and nobody named it, one that bears the
label of cluster DNS, or OpenShift's. Two that stand for different pods are a fault, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dnsproxy.cluster_dns.found import FoundService, ServiceRef
from dnsproxy.cluster_dns.requests import SERVICE, Blame, Fault, Missing, Requests
from dnsproxy.dns.wire import DNS_PORT
from sidecar.kubernetes.structs.network import Service

CLUSTER_DNS: Final = "k8s-app in (kube-dns,coredns)"
"""The label that the Services of RKE2, kubespray and the coredns chart have, under names of their own."""
ELSEWHERE: Final = (("openshift-dns", "dns-default"),)
"""Services that lie in a namespace of their own."""
_UPSTREAM: Final = "-upstream"
"""The end of the names of Services that only node-local-dns asks."""
_REMEDY: Final = "name the Service that pods ask with --dns-service"


def find_service(requests: Requests, where: ServiceRef) -> Service | None:
    """The Service; None where it is not known, which a fault tells."""
    found = requests.get(SERVICE, where.namespace, where.service)
    if isinstance(found, Service):
        fault = _fault_of(found)
        if fault:
            requests.tell(Fault(Blame.CONTENTS, f"Service {_name(found)} {fault}"))
        return None if fault else found
    if found is Missing.UNSEEN:
        return None
    others = [] if where.exact else _others(requests, where)
    if not others:
        text = f"there is no Service {where.service} in namespace {where.namespace}"
        requests.tell(Fault(Blame.CONTENTS, text, _REMEDY))
        return None
    if len({tuple(sorted(selector_of(one).items())) for one in others}) > 1:
        text = f"several Services could be the cluster's DNS: {', '.join(map(_name, others))}"
        requests.tell(Fault(Blame.CONTENTS, text, _REMEDY))
        return None
    return others[0]


def make_service(service: Service) -> FoundService:
    """The same as a value for others."""
    return FoundService(service.metadata.namespace or "", service.metadata.name, addresses_of(service))


def selector_of(service: Service) -> Mapping[str, str]:
    """The labels of the pods that it stands for."""
    return (service.spec.selector if service.spec else None) or {}


def addresses_of(service: Service) -> tuple[str, ...]:
    """Its ClusterIPs, both families, the primary first; empty where it has none."""
    spec = service.spec
    listed = (spec.cluster_ips or (spec.cluster_ip or "",)) if spec else ()
    return tuple(address for address in listed if address not in ("", "None"))


def _others(requests: Requests, where: ServiceRef) -> list[Service]:
    """Services that look like the cluster's DNS; elsewhere only where this namespace has none."""
    listed = requests.list(SERVICE, where.namespace, label_selector=CLUSTER_DNS)
    found = [one for one in listed if _is_likely(one)] if isinstance(listed, tuple) else []
    if found or listed is Missing.UNSEEN:
        return found
    for namespace, name in ELSEWHERE:
        one = requests.get(SERVICE, namespace, name)
        found += [one] if isinstance(one, Service) and _is_likely(one) else []
    return found


def _is_likely(service: Service) -> bool:
    return _fault_of(service) is None and not service.metadata.name.endswith(_UPSTREAM)


def _fault_of(service: Service) -> str | None:
    if not addresses_of(service):
        return "has no ClusterIP, so pods cannot ask it"
    if not selector_of(service):
        return "selects no pods: its endpoints are made by hand, or the DNS runs outside of the cluster"
    if not any(port.port == DNS_PORT for port in (service.spec.ports if service.spec else None) or ()):
        return f"has no port {DNS_PORT}, so pods cannot ask it"
    return None


def _name(service: Service) -> str:
    return f"{service.metadata.namespace}/{service.metadata.name}"
