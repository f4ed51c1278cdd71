"""Cluster Service: the Service that pods ask for DNS.

The law: it is the Service that the user named, or `kube-system/kube-dns`. If that is absent and was not named, it is
one of another usual name with the label of cluster DNS, or OpenShift's; else any Service of kube-system with that
label. Two candidates that select different pods are a fault. RBAC can grant names, and a list only of all Services.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dnsproxy.cluster_dns.found import FoundService, ServiceRef
from dnsproxy.cluster_dns.requests import SERVICE, Blame, Fault, Missing, Requests
from dnsproxy.dns.wire import DNS_PORT
from sidecar.kubernetes.structs.network import Service

CLUSTER_DNS: Final = "k8s-app in (kube-dns,coredns)"
"""The label of the DNS Services of RKE2, kubespray and the coredns chart, which have other names."""
USUAL: Final = ("coredns", "rke2-coredns-rke2-coredns")
"""Other names of a DNS Service: of kubespray, Kapsule and the coredns chart, and of RKE2."""
ELSEWHERE: Final = (("openshift-dns", "dns-default"),)
"""DNS Services outside of kube-system; their DaemonSet has the same name."""
_LABELS: Final = frozenset(["kube-dns", "coredns"])
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
    """Services that look like the cluster's DNS; those of other namespaces only if this one has none by name."""
    usual = [(where.namespace, name) for name in USUAL]
    for places in (usual, ELSEWHERE):
        seen = [one for place in places if isinstance(one := requests.peek(SERVICE, *place), Service)]
        found = [one for one in seen if _is_likely(one) and (places is ELSEWHERE or _is_labelled(one))]
        if found or requests.wanted:
            return found
    return _labelled(requests, where, instead_of=[*usual, *ELSEWHERE])


def _labelled(requests: Requests, where: ServiceRef, *, instead_of: Iterable[tuple[str, str]]) -> list[Service]:
    """Those of any name with the label; without any, what may not be seen of the usual ones is a fault."""
    absent = f"there is no Service {where.service}: {_REMEDY}, such as {where.namespace}/coredns"
    listed = requests.list(SERVICE, where.namespace, label_selector=CLUSTER_DNS, instead=absent)
    found = [one for one in listed if _is_likely(one)] if isinstance(listed, tuple) else []
    if not found and listed is not Missing.UNSEEN:
        for place in instead_of:
            requests.get(SERVICE, *place)
    return found


def _is_labelled(service: Service) -> bool:
    return (service.metadata.labels or {}).get("k8s-app") in _LABELS


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
