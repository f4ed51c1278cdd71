"""The Pods that endpoints refer to, and whether an endpoint may count as its Pod.

The law: an EndpointSlice is text of its writer, address and reference alike. Its reference shows that it was made for a
Pod; only the Pod's own status, which the kubelet writes, shows that the address is that Pod's.
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodStatus
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Final

import msgspec

from sidecar.kubernetes.endpoint_slices import EndpointSlice, SliceEndpoint
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from wholeip.mappings.addresses import Address, parse_each
from wholeip.mappings.refused_addresses import parse_shown

_ENDED: Final = frozenset({"Succeeded", "Failed"})
"""Phases in which the status keeps an address that the network plugin may give to another Pod."""


_LONGEST: Final = 253
"""Characters in the name of a Pod. The API server does not check that of a reference."""


class Proof(StrEnum):
    """What an endpoint needs to count as a Pod of its Service's namespace."""

    ANY = "any"
    """Nothing."""
    REFERENCED = "referenced"
    """A targetRef to a Pod of the namespace; one that states no namespace means the slice's own."""
    VERIFIED = "verified"
    """The same, and that Pod has the address. Needs the right to read Pods."""


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    host_network: bool | None = None


class _PodIP(msgspec.Struct, frozen=True, gc=False):
    ip: str | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    """The first of podIPs. The API server fills in the list; a virtual kubelet's own objects may lack it."""
    pod_ips: tuple[_PodIP | None, ...] | None = msgspec.field(default=None, name="podIPs")


class PodObject(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Pod that are read."""

    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


PODS: Final = Collection("Pod", "/api/v1/pods", PodObject)
"""RBAC: list and watch on pods; only with Proof.VERIFIED."""


def addresses_of(pod: PodObject | Unreadable) -> frozenset[Address]:
    """The addresses that are this Pod's own now: none in its node's network, and none after its end."""
    if isinstance(pod, Unreadable) or (pod.spec or _Spec()).host_network:
        return frozenset()
    status = pod.status or _Status()
    if status.phase in _ENDED:
        return frozenset()
    return parse_each(parse_shown, (one.ip for one in status.pod_ips or (_PodIP(status.pod_ip),) if one is not None))


def pod_of(one: EndpointSlice, endpoint: SliceEndpoint) -> str | None:
    """The Pod of the slice's namespace that an endpoint refers to, as NAMESPACE/NAME."""
    ref, namespace = endpoint.target_ref, one.metadata.namespace
    if ref is None or ref.kind != "Pod" or (ref.namespace or namespace) != namespace:
        return None
    if not ref.name or len(ref.name) > _LONGEST:
        return None
    return f"{namespace}/{ref.name}"


class KnownPods:
    """The Pods of the cluster with their addresses, and the slices that refer to them."""

    def __init__(self, proof: Proof = Proof.REFERENCED) -> None:
        """No Pods."""
        self.proof = proof
        self._addresses: dict[str, frozenset[Address]] = {}
        self._slices: defaultdict[str, set[str]] = defaultdict(set)
        """By Pod, the keys of slices that refer to it."""

    def refer(self, key: str, before: EndpointSlice | None, after: EndpointSlice | None) -> None:
        """A slice with this key has changed."""
        for pod in _pods_of(before):
            self._slices[pod].discard(key)
            if not self._slices[pod]:
                del self._slices[pod]
        for pod in _pods_of(after):
            self._slices[pod].add(key)

    def change(self, changes: Mapping[str, PodObject | Unreadable | None]) -> AbstractSet[str]:
        """Apply changes, by NAMESPACE/NAME; None: deleted. Returns the keys of slices that this concerns."""
        concerned = set[str]()
        for key, pod in changes.items():
            before = self._addresses.pop(key, None)
            after = None if pod is None else addresses_of(pod)
            if after is not None:
                self._addresses[key] = after
            if before != after:
                concerned |= self._slices.get(key, set())
        return concerned

    def doubt(self, one: EndpointSlice, endpoint: SliceEndpoint, address: Address) -> str | None:
        """Why this address of an endpoint does not count as a Pod's, or None if it does."""
        if self.proof is Proof.ANY:
            return None
        if (pod := pod_of(one, endpoint)) is None:
            return f"its targetRef is no Pod of the namespace {one.metadata.namespace}; --endpoints any accepts it"
        if self.proof is Proof.REFERENCED or address in (known := self._addresses.get(pod, frozenset())):
            return None
        return f"the Pod {pod} has another address" if known else f"no running Pod {pod} has an address of its own"


def _pods_of(one: EndpointSlice | None) -> Iterator[str]:
    if one is None:
        return
    for endpoint in one.endpoints or ():
        if (pod := pod_of(one, endpoint)) is not None:
            yield pod
