"""The endpoints of headless Services: the addresses of their pods, by the pod's hostname.

The law: pure; the index holds an entry exactly as long as the slice that caused it. As external-dns does, it takes the
first address of an endpoint that is a pod, if it is ready or its Service publishes addresses that are not.
https://kubernetes-sigs.github.io/external-dns/latest/docs/sources/service/#clusterip-headless
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from sys import intern
from types import MappingProxyType
from typing import Final

import msgspec

from dnsproxy.dns.addresses import is_address
from dnsproxy.sources.external_dns.structs import EndpointSlice, SliceEndpoint
from sidecar.kubernetes.endpoint_slices import FAMILIES

_POD: Final = "Pod"


class PodEndpoint(msgspec.Struct, frozen=True, gc=False):
    """One pod of a headless Service."""

    address: str
    """In canonical form."""
    hostname: str
    """Of the pod, below the Service's; empty if it has none."""
    ready: bool
    order: bytes = b""
    """Sorts as the addresses do, IPv4 before IPv6."""


_NONE: Final[Mapping[str, tuple[PodEndpoint, ...]]] = MappingProxyType({})


class HeadlessEndpoints:
    """The endpoints of all headless Services, by Service and slice, `NAMESPACE/NAME` each."""

    def __init__(self) -> None:
        self._by_service: dict[str, dict[str, tuple[PodEndpoint, ...]]] = {}
        self._service_of: dict[str, str] = {}

    def put(self, key: str, part: EndpointSlice | None) -> set[str]:
        """Replace a slice, or remove it. Returns the Services whose endpoints changed."""
        service, found = _service_of(part), endpoints_of(part)
        before = self._service_of.get(key)
        if before == service and before is not None and self._by_service[before].get(key) == found:
            return set()
        if before is not None:
            self._remove(key, before)
        if service is not None and found:
            self._service_of[key] = service
            self._by_service.setdefault(service, {})[key] = found
        return {one for one in (before, service) if one is not None}

    def of(self, service: str, *, unready: bool) -> list[PodEndpoint]:
        """The endpoints of a Service that count, in the order of their addresses, each once."""
        parts = self._by_service.get(service, _NONE).values()
        found = {(one.address, one.hostname): one for part in parts for one in part if one.ready or unready}
        return sorted(found.values(), key=lambda one: (one.order, one.hostname))

    def is_empty(self) -> bool:
        """Whether no trace of any slice is left."""
        return not (self._by_service or self._service_of)

    def _remove(self, key: str, service: str) -> None:
        del self._service_of[key]
        parts = self._by_service[service]
        del parts[key]
        if not parts:
            del self._by_service[service]


def endpoints_of(part: EndpointSlice | None) -> tuple[PodEndpoint, ...]:
    """The pods in a slice."""
    if part is None or part.address_type not in FAMILIES:
        return ()
    return tuple(_endpoints(part.metadata.namespace or "", part.endpoints or ()))


def _endpoints(namespace: str, endpoints: Iterable[SliceEndpoint | None]) -> Iterator[PodEndpoint]:
    for one in endpoints:
        if one is None or not one.addresses or not _is_pod(one, namespace):
            continue
        first = one.addresses[0] or ""
        if is_address(first):
            address = ip_address(first)
            ready = one.conditions is None or one.conditions.ready is not False
            yield PodEndpoint(str(address), one.hostname or "", ready, bytes([address.version]) + address.packed)


def _is_pod(endpoint: SliceEndpoint, namespace: str) -> bool:
    ref = endpoint.target_ref
    return ref is not None and ref.kind == _POD and (ref.namespace or namespace) == namespace


def _service_of(part: EndpointSlice | None) -> str | None:
    """The Service of a slice; it is in the slice's own namespace."""
    labels = part.metadata.labels if part is not None else None
    if part is None or labels is None or not labels.service_name:
        return None
    return intern(f"{part.metadata.namespace or ''}/{labels.service_name}")
