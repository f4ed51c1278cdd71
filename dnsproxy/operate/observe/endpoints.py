"""Endpoints: where connections to a port of a Service end.

The law: pure. The endpoints that get new connections, as endpoint_choice.py has them; the ClusterIPs where the slices
are a placeholder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dnsproxy.doctor.facts.model import Service
from sidecar.kubernetes.endpoint_choice import find_usable, in_order, preferred
from sidecar.kubernetes.endpoint_slices import FAMILIES, Condition, EndpointSlice, condition_of
from sidecar.kubernetes.placeholder_slices import is_placeholder
from sidecar.values.endpoints import Endpoint, is_address, parse_address

_TCP: Final = "TCP"

Endpoints = dict[int, tuple[Endpoint, ...]]
"""By port of the Service, sorted."""


def endpoints_of(service: Service, slices: Iterable[EndpointSlice]) -> Endpoints:
    """The endpoints of each TCP port of a Service."""
    found = tuple(one for one in slices if one.address_type in FAMILIES)
    if is_placeholder(found, {port.name for port in service.ports}):
        return {
            port.port: tuple(Endpoint(parse_address(ip), port.port) for ip in service.cluster_ips if is_address(ip))
            for port in service.ports
        }
    return {port.port: _endpoints_of_port(found, port.name) for port in service.ports}


def leaving_of(service: Service, slices: Iterable[EndpointSlice]) -> Endpoints:
    """The terminating endpoints of each TCP port that still serve, where ready ones get new connections."""
    found = tuple(slices)
    usable = {port.port: find_usable(found, port.name) for port in service.ports}
    return {port: in_order(one.leaving - one.ready) for port, one in usable.items() if one.ready}


def ready_pods(slices: Iterable[EndpointSlice]) -> tuple[str, ...]:
    """One address of each ready pod, IPv4 where it has both."""
    pods: dict[str, str] = {}
    for one in sorted(slices, key=lambda one: one.address_type):
        for endpoint in one.endpoints or () if one.address_type in FAMILIES else ():
            address = next(filter(is_address, endpoint.addresses or ()), None)
            if address is not None and condition_of(endpoint) is Condition.READY:
                pod = endpoint.target_ref.name if endpoint.target_ref else None
                pods.setdefault(pod or address, parse_address(address))
    return tuple(sorted(pods.values()))


def ready_families(slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """The families in which a pod is ready: IPv4, IPv6."""
    return frozenset(
        one.address_type
        for one in slices
        if one.address_type in FAMILIES
        and any(condition_of(pod) is Condition.READY and pod.addresses for pod in one.endpoints or ())
    )


def _endpoints_of_port(slices: Iterable[EndpointSlice], name: str) -> tuple[Endpoint, ...]:
    usable = find_usable(slices, name)
    return in_order(preferred(ready=usable.ready, leaving=usable.leaving))
