"""Own Service: the addresses of dnsproxy's Service, its ready pods, and whether it forwards to the cluster's DNS.

The law: everything is read with the same requests as the cluster's DNS, never guessed. A stanza without a ready server
behind it, or a Service that makes a forwarding loop, is reported before it is written. No content of a cluster raises
an exception.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dnsproxy.cluster_dns.cluster_service import addresses_of, selector_of
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.requests import (
    DAEMON_SET,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    SERVICE,
    Answer,
    Blame,
    Fault,
    Request,
    Requests,
)
from dnsproxy.cluster_dns.servers import labels_of, pod_of
from dnsproxy.dns.wire import DNS_PORT
from sidecar.kubernetes.endpoint_slices import SERVICE_NAME, EndpointSlice, SliceEndpoint
from sidecar.kubernetes.structs.network import Service
from sidecar.kubernetes.structs.workload import Container, PodSpec
from sidecar.values.endpoints import Endpoint, parse_address

ADMIN_PORT: Final = 8081
"""The port of `dnsproxy serve --admin` in its pods, if their slices name none `admin`."""
_ADMIN: Final = "admin"
_FLAG: Final = "--upstream"
_VARIABLE: Final = "DNSPROXY_UPSTREAM"
_CLUSTER_FIRST: Final = frozenset(["", "ClusterFirst"])
_ALWAYS_CLUSTER: Final = "ClusterFirstWithHostNet"


@dataclass(frozen=True, slots=True)
class FoundOwn:
    """dnsproxy's own Service. The result is valid once nothing is wanted."""

    ref: ObjectRef
    endpoints: tuple[Endpoint, ...] = ()
    """Its ClusterIPs with its DNS port, of both families, the primary first."""
    ready: int | None = None
    """Pods that are ready; None if unknown."""
    pods: tuple[Endpoint, ...] = ()
    """The admin ports of its ready pods, one address each."""
    loop: str = ""
    """How its queries come back to the cluster's DNS, as a sentence without its full stop; empty without a loop."""
    faults: tuple[Fault, ...] = ()
    asked: tuple[Request, ...] = ()
    wanted: tuple[Request, ...] = ()

    @property
    def stanza_addresses(self) -> tuple[Endpoint, ...]:
        """The address for a stanza: the primary one alone.

        CoreDNS waits two seconds for each address of a hung dnsproxy before it asks the original upstreams. A second
        address of the same Service has the same pods behind it, so it doubles that wait and helps against no fault.
        """
        return self.endpoints[:1]


def find_own(answers: Mapping[Request, Answer], ref: ObjectRef, cluster_dns: Collection[str] = ()) -> FoundOwn:
    """What these answers show; dnsproxy must not forward to the addresses `cluster_dns`."""
    requests = Requests(answers)
    found = requests.get(SERVICE, ref.namespace, ref.name)
    service = found if isinstance(found, Service) else None
    endpoints = tuple(_endpoints(service)) if service else ()
    if service is not None and not endpoints:
        requests.report(Fault(Blame.CONTENTS, f"Service {ref} has no ClusterIP with a DNS port that CoreDNS could ask"))
    elif service is None and Request(SERVICE, ref.namespace, ref.name) in answers:
        remedy = "deploy dnsproxy first, or name its Service with --service, or its address with --address"
        requests.report(Fault(Blame.CONTENTS, f"there is no Service {ref.name} in namespace {ref.namespace}", remedy))
    slices = _slices(requests, ref) if endpoints else None
    ready = None if slices is None else sum(_is_ready(one) for each in slices for one in each.endpoints or ())
    pods = pods_of(slices or ())
    loop = next(_loops(requests, service, ref, cluster_dns), "") if service else ""
    return FoundOwn(ref, endpoints, ready, pods, loop, tuple(requests.faults), tuple(requests.asked), requests.wanted)


def _endpoints(service: Service) -> Iterator[Endpoint]:
    ports = (service.spec.ports if service.spec else None) or ()
    datagrams = [port.port for port in ports if port.protocol == "UDP"]
    port = DNS_PORT if DNS_PORT in datagrams else next(iter(datagrams), None)
    for address in addresses_of(service) if port else ():
        try:
            yield Endpoint(parse_address(address), port or DNS_PORT)
        except ValueError:
            continue


def slices_request(ref: ObjectRef) -> Request:
    """The request for the pods of a Service."""
    return Request(ENDPOINT_SLICE, ref.namespace, label_selector=f"{SERVICE_NAME}={ref.name}")


def pods_of(slices: Iterable[EndpointSlice]) -> tuple[Endpoint, ...]:
    """The admin ports of the ready pods: the port of that name of their slice, else ADMIN_PORT."""
    pods: dict[str, Endpoint] = {}
    # Of a dual-stack Service, each pod is in two slices, and IPv4 sorts first.
    for one in sorted(slices, key=lambda one: one.address_type):
        port = next((port.port for port in one.ports or () if port.name == _ADMIN and port.port), ADMIN_PORT)
        for endpoint in one.endpoints or ():
            address = next(iter(endpoint.addresses or ()), "")
            pod = endpoint.target_ref.name if endpoint.target_ref else None
            if _is_ready(endpoint):
                with suppress(ValueError):
                    pods.setdefault(pod or address, Endpoint(parse_address(address), port))
    return tuple(pods.values())


def _slices(requests: Requests, ref: ObjectRef) -> tuple[EndpointSlice, ...] | None:
    request = slices_request(ref)
    listed = requests.list(ENDPOINT_SLICE, request.namespace, label_selector=request.label_selector)
    return listed if isinstance(listed, tuple) else None


def _is_ready(endpoint: SliceEndpoint) -> bool:
    return endpoint.conditions is None or endpoint.conditions.ready is not False


def _loops(requests: Requests, service: Service, ref: ObjectRef, cluster_dns: Collection[str]) -> Iterator[str]:
    selector = selector_of(service)
    for kind in (DEPLOYMENT, DAEMON_SET):
        listed = requests.list(kind, ref.namespace)
        for workload in listed if isinstance(listed, tuple) and selector else ():
            if selector.items() <= labels_of(workload).items():
                name = f"{kind.name} {ref.namespace}/{workload.metadata.name}"
                yield from (f"{name} {why}" for why in _loops_of(pod_of(workload), cluster_dns))


def _loops_of(pod: PodSpec, cluster_dns: Collection[str]) -> Iterator[str]:
    upstreams = [one for container in pod.containers or () for one in _upstreams(container)]
    if upstreams:
        yield from (f"forwards to {one}, the cluster's DNS" for one in upstreams if _host(one) in cluster_dns)
        return
    named = [one for one in (pod.dns_config.nameservers if pod.dns_config else None) or () if one in cluster_dns]
    policy = pod.dns_policy or ""
    if any(container.env_from for container in pod.containers or ()):
        # One of the variables may be an upstream.
        return
    if policy == _ALWAYS_CLUSTER or (policy in _CLUSTER_FIRST and not pod.host_network):
        yield f"has dnsPolicy {policy or 'ClusterFirst'} and no {_FLAG}, so it forwards to the cluster's DNS"
    elif named:
        yield f"has {named[0]}, the cluster's DNS, as a nameserver"


def _upstreams(container: Container) -> Iterator[str]:
    words = [*(container.command or ()), *(container.args or ())]
    for word, following in pairwise([*words, ""]):
        if word == _FLAG:
            yield following
        elif word.startswith(f"{_FLAG}="):
            yield word.partition("=")[2]
    for variable in container.env or ():
        if variable.name == _VARIABLE:
            # A value that comes from another object exists but is unknown.
            yield from (variable.value or "unknown").split()


def _host(upstream: str) -> str:
    text = upstream.rpartition("://")[2].partition("#")[0]
    host = text[1:].partition("]")[0] if text.startswith("[") else text
    return host.rpartition(":")[0] if host.count(":") == 1 else host
