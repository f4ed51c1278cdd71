"""Cluster Service: the Service that pods ask for DNS.

The law: it is the Service that the user named, or `kube-system/kube-dns`. If that is absent and was not named, it is a
Service with the label of cluster DNS, or OpenShift's. Two candidates that select different pods are a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dnsproxy.cluster_dns.found import FoundService, ServiceRef
from dnsproxy.cluster_dns.requests import SERVICE, Blame, Fault, Missing, Requests
from dnsproxy.dns.wire import DNS_PORT
from sidecar.kubernetes.structs.network import Service

CLUSTER_DNS: Final = "k8s-app in (kube-dns,coredns)"
"""The label of the DNS Services of RKE2, kubespray and the coredns chart, which have other names."""
ELSEWHERE: Final = (("openshift-dns", "dns-default"),)
"""DNS Services outside of kube-system."""
_UPSTREAM: Final = "-upstream"
"""The end of the name of a Service that only node-local-dns asks."""
_REMEDY: Final = "name the Service that pods ask with --dns-service"


def find_service(requests: Requests, where: ServiceRef) -> Service | None:
    """The Service; None, and a fault, if it is unknown."""
    found = requests.get(SERVICE, where.namespace, where.service)
    if isinstance(found, Service):
        fault = _fault_of(found)
        if fault:
            requests.report(Fault(Blame.CONTENTS, f"Service {_name(found)} {fault}"))
        return None if fault else found
    if found is Missing.UNSEEN:
        return None
    others = [] if where.exact else _others(requests, where)
    if not others:
        text = f"there is no Service {where.service} in namespace {where.namespace}"
        requests.report(Fault(Blame.CONTENTS, text, _REMEDY))
        return None
    if len({tuple(sorted(selector_of(one).items())) for one in others}) > 1:
        text = f"several Services could be the cluster's DNS: {', '.join(map(_name, others))}"
        requests.report(Fault(Blame.CONTENTS, text, _REMEDY))
        return None
    return others[0]


def make_service(service: Service) -> FoundService:
    """The Service as a value of discovery."""
    return FoundService(service.metadata.namespace or "", service.metadata.name, addresses_of(service))


def selector_of(service: Service) -> Mapping[str, str]:
    """The labels of the pods that it selects."""
    return (service.spec.selector if service.spec else None) or {}


def addresses_of(service: Service) -> tuple[str, ...]:
    """Its ClusterIPs of both families, the primary first; empty if it has none."""
    spec = service.spec
    listed = (spec.cluster_ips or (spec.cluster_ip or "",)) if spec else ()
    return tuple(address for address in listed if address not in ("", "None"))


def _others(requests: Requests, where: ServiceRef) -> list[Service]:
    """Services that look like the cluster's DNS; those of other namespaces only if this one has none."""
    absent = f"there is no Service {where.service}: {_REMEDY}, such as {where.namespace}/coredns"
    listed = requests.list(SERVICE, where.namespace, label_selector=CLUSTER_DNS, instead=absent)
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
        return "selects no pods: its endpoints were made by hand, or the DNS runs outside of the cluster"
    if not any(port.port == DNS_PORT for port in (service.spec.ports if service.spec else None) or ()):
        return f"has no port {DNS_PORT}, so pods cannot ask it"
    return None


def _name(service: Service) -> str:
    return f"{service.metadata.namespace}/{service.metadata.name}"
