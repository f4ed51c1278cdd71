"""Finds the pods of a Service by address family, and chooses the one that gets the address.

The law: the choice does not depend on the order of slices. The pod that has the address keeps it while it is ready: a
second pod that becomes ready must not take over the first pod's traffic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from sidecar.kubernetes.endpoint_choice import USABLE, preferred
from sidecar.kubernetes.endpoint_slices import PATH, Condition, EndpointSlice, SliceEndpoint, condition_of
from sidecar.kubernetes.objects import Collection
from wholeip.mappings.addresses import Address, sorted_addresses
from wholeip.mappings.pods import KnownPods
from wholeip.mappings.refused_addresses import parse_mappable
from wholeip.mappings.services import LABEL

_VERSIONS = {"IPv4": 4, "IPv6": 6}
_SHOWN: Final = 3
"""Endpoints of each kind in a sentence."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that may get an address."""

    address: Address
    node: str | None = None
    """The node on which it runs, if known."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The pods of a Service in one family."""

    ready: tuple[Pod, ...] = ()
    """Lowest address first."""
    leaving: tuple[Pod, ...] = ()
    """Terminating and still serving: better than none (endpoint_choice.py)."""
    others: Counter[Condition] = field(default_factory=Counter)
    """The number of other pods, by the condition that excludes them."""
    unusable: tuple[str, ...] = ()
    """Addresses that are refused, with the reason."""
    foreign: tuple[str, ...] = ()
    """Addresses that do not count as a Pod's, with the reason."""
    addresses: frozenset[Address] = frozenset()
    """The addresses of all pods that may get the load balancer's address."""

    def choose(self, in_use: Callable[[], AbstractSet[Address]] = frozenset) -> Pod | None:
        """The pod that gets the address; `in_use` returns the pods that have it now, called only if it matters."""
        group = preferred(ready=self.ready, leaving=self.leaving)
        if len(group) > 1:
            having = in_use()
            return next((one for one in group if one.address in having), group[0])
        return group[0] if group else None

    def describe_none(self) -> str:
        """Why there is no pod to choose: `no pod is ready; 1 not ready`."""
        states = [f"{count} {condition}" for condition, count in sorted(self.others.items())]
        return "; ".join(["no pod is ready", *states, *_first(self.unusable), *_first(self.foreign)])


def _first(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The first few, and the number of the others: a slice has up to 1,000 endpoints."""
    more = len(texts) - _SHOWN
    return (*texts[:_SHOWN], f"and {more:,} more") if more > 0 else texts


def slice_collection(proxy_name: str) -> Collection[EndpointSlice]:
    """The slices of Services with the label: the control plane copies it from the Service to its slices.

    kube-proxy selects slices by the same label. RBAC: list and watch on endpointslices (discovery.k8s.io).
    """
    return Collection("EndpointSlice", PATH, EndpointSlice, label_selector=f"{LABEL}={proxy_name}")


def service_key(one: EndpointSlice) -> str | None:
    """The Service of a slice, as NAMESPACE/NAME."""
    name = one.metadata.labels.service_name if one.metadata.labels else None
    return f"{one.metadata.namespace}/{name}" if name else None


def candidates(slices: Iterable[EndpointSlice], version: int, known: KnownPods | None = None) -> Candidates:
    """The pods of one family (4, 6) of the Service that has these slices."""
    known = known or KnownPods()
    groups: dict[Condition, dict[Address, Pod]] = {condition: {} for condition in USABLE}
    others: Counter[Condition] = Counter()
    unusable: set[str] = set()
    foreign: set[str] = set()
    for one, endpoint in _endpoints(slices, version):
        condition = condition_of(endpoint)
        group = groups.get(condition)
        if group is None:
            others[condition] += 1
            continue
        for text in endpoint.addresses or ():
            try:
                address = parse_mappable(text)
            except ValueError as error:
                unusable.add(f"{text}: {error}")
            else:
                if address.version != version:
                    continue
                if doubt := known.doubt(one, endpoint, address):
                    foreign.add(f"{address}: {doubt}")
                else:
                    _put(group, Pod(address, endpoint.node_name))
    ready, leaving = groups[Condition.READY], groups[Condition.LEAVING]
    return Candidates(
        tuple(ready[one] for one in sorted_addresses(ready)),
        tuple(leaving[one] for one in sorted_addresses(leaving.keys() - ready.keys())),
        others,
        tuple(sorted(unusable)),
        tuple(sorted(foreign)),
        frozenset((*ready, *leaving)),
    )


def _endpoints(slices: Iterable[EndpointSlice], version: int) -> Iterator[tuple[EndpointSlice, SliceEndpoint]]:
    for one in slices:
        if _VERSIONS.get(one.address_type) == version:
            yield from ((one, endpoint) for endpoint in one.endpoints or ())


def _put(group: dict[Address, Pod], pod: Pod) -> None:
    known = group.get(pod.address)
    if known is None or (pod.node or "") < (known.node or ""):
        group[pod.address] = pod
