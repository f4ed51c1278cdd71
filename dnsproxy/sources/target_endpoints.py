"""The endpoints of a target Service: through which of its addresses clients reach a ready pod, and why through none.

The law: pure. A claim is answered with an address only where a connection to it is accepted; a port without a ready
endpoint refuses connections, and then the public address that DNS has is no worse. Web clients use 80 and 443, so each
of these that the Service has needs a ready endpoint; a Service with neither needs one for any port.

A Service whose internalTrafficPolicy is Local has no address that is right for all: kube-proxy drops what clients of a
node without an endpoint send, and an answer does not know its client's node.

Endpoints that terminate do not count, although kube-proxy may still use them (KEP-1669): a client keeps an answer for
its TTL, and they are gone by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import Final

from dnsproxy.sources.target_service import Service, ServicePort, addresses_of
from sidecar.kubernetes.endpoint_slices import (
    SERVICE_NAME,
    Condition,
    EndpointSlice,
    condition_of,
)
from sidecar.kubernetes.objects import Collection, Unreadable
from sidecar.kubernetes.placeholder_slices import is_placeholder

_TCP: Final = "TCP"
_WEB: Final = frozenset({80, 443})
_LOCAL_FAULT: Final = "its internalTrafficPolicy is Local, which drops clients on nodes without one of its pods"

Slices = Iterable[EndpointSlice | Unreadable]


def slice_collection(key: str) -> Collection[EndpointSlice]:
    """The EndpointSlices of the Service `NAMESPACE/NAME`. RBAC: list and watch endpointslices in its namespace.

    Optional and discovered: if RBAC hides them, or the API server has none for a while, the Service's addresses count.
    """
    namespace, _, name = key.partition("/")
    return Collection(
        f"EndpointSlices of {key}",
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
        EndpointSlice,
        label_selector=f"{SERVICE_NAME}={name}",
        optional=True,
        discovered=True,
    )


def reachable_addresses(service: Service | Unreadable | None, slices: Slices) -> tuple[str, ...]:
    """The ClusterIPs behind which every port that clients use has a ready endpoint; a family at a time."""
    if not isinstance(service, Service) or service.is_local:
        return ()
    usable = tuple(one for one in slices if isinstance(one, EndpointSlice))
    return tuple(text for text in addresses_of(service) if not _unready_ports(service, usable, _family(text)))


def endpoint_fault(service: Service, slices: Slices) -> str:
    """Why no address of a Service leads to a ready pod: `its port 443 has no ready endpoint; 2 not ready`."""
    if service.is_local:
        return _LOCAL_FAULT
    usable = tuple(one for one in slices if isinstance(one, EndpointSlice))
    families = dict.fromkeys(map(_family, addresses_of(service)))
    lacking = [port for family in families for port in _unready_ports(service, usable, family)]
    ports = ", ".join(dict.fromkeys(str(port.port) for port in lacking))
    counts = Counter(condition_of(one) for part in usable for one in part.endpoints or ())
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()) if state is not Condition.READY)
    subject = f"its port {ports} has" if len({port.port for port in lacking}) == 1 else f"its ports {ports} have"
    return f"{subject} no ready endpoint" + (f"; {states}" if states else "")


def _unready_ports(service: Service, slices: Iterable[EndpointSlice], family: str) -> list[ServicePort]:
    """The TCP ports that clients use and that have no ready endpoint of a family."""
    ports = [one for one in service.ports if (one.protocol or _TCP) == _TCP]
    ready = frozenset(_ready_names({one.name or "" for one in service.ports}, slices, family))
    lacking = [one for one in ports if (one.name or "") not in ready]
    if any(one.port in _WEB for one in ports):
        return [one for one in lacking if one.port in _WEB]
    return lacking if len(lacking) == len(ports) else []


def _ready_names(names: Set[str], slices: Iterable[EndpointSlice], family: str) -> Iterator[str]:
    """Those of the ports' names that have a ready endpoint of a family."""
    for part in slices:
        if not any(condition_of(one) is Condition.READY and one.addresses for one in part.endpoints or ()):
            continue
        if is_placeholder((part,), names):
            # All ports of all addresses of the Service are served.
            yield from names
        elif part.address_type == family:
            yield from (one.name or "" for one in part.ports or () if (one.protocol or _TCP) == _TCP)


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"
