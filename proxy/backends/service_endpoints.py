"""The ports of a Service, and what accepts the connections of a port.

The law: pure. endpoint_choice.py decides which conditions get new connections, and hold_back.py when. Existing
connections of a pod are not affected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from proxy.backends.hold_back import choose_all
from proxy.routes import ServicePort
from sidecar.kubernetes.endpoint_choice import USABLE, Usable, endpoints_of_port, find_usable
from sidecar.kubernetes.endpoint_slices import (
    SERVICE_NAME,
    EndpointSlice,
    condition_of,
)
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.placeholder_slices import is_placeholder
from sidecar.kubernetes.structs.network import Service, ServiceSpec
from sidecar.kubernetes.structs.network import ServicePort as Port
from sidecar.values.endpoints import Endpoint, is_address, parse_address

_TCP: Final = "TCP"


def service_collection(namespace: str, name: str) -> Collection[Service]:
    """The one Service. RBAC: list and watch on services in its namespace."""
    path = f"/api/v1/namespaces/{namespace}/services"
    return Collection(f"Service {namespace}/{name}", path, Service, field_selector=f"metadata.name={name}")


def slice_collection(namespace: str, name: str) -> Collection[EndpointSlice]:
    """The slices of a Service. RBAC: list and watch on endpointslices (discovery.k8s.io) in its namespace."""
    return Collection(
        f"EndpointSlices of {namespace}/{name}",
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
        EndpointSlice,
        label_selector=f"{SERVICE_NAME}={name}",
    )


def find_port(service: Service | None, wanted: int | str) -> Port:
    """A TCP port of a Service, by number or name. Raises ValueError with the reason."""
    if service is None:
        raise ValueError("there is no such Service")
    spec = service.spec or ServiceSpec()
    if spec.type == "ExternalName":
        raise ValueError("the Service is an ExternalName; name its host instead")
    for port in spec.ports or ():
        if (port.protocol or _TCP) == _TCP and wanted in {port.name, port.port}:
            return port
    raise ValueError(f"the Service has no TCP port {wanted}")


def port_name(service: Service | None, wanted: int | str) -> str:
    """The name of a Service's port in its slices, empty for an unnamed port. Raises ValueError with the reason."""
    return find_port(service, wanted).name or ""


def find_targets(service: Service | None, wanted: int | str, slices: Iterable[EndpointSlice]) -> Usable:
    """What accepts connections for a port: its endpoints; the ClusterIPs where the slices are a placeholder.

    Raises ValueError with the reason.
    """
    slices, port = tuple(slices), find_port(service, wanted)
    spec = service.spec if service is not None and service.spec is not None else ServiceSpec()
    if is_placeholder(slices, {one.name or "" for one in spec.ports or ()}):
        addresses = filter(is_address, spec.cluster_ips or ())
        return Usable(frozenset(Endpoint(parse_address(address), port.port) for address in addresses))
    return find_usable(slices, port.name or "")


def usable_endpoints(slices: Iterable[EndpointSlice], port: str) -> list[Endpoint]:
    """The endpoints that get new connections, in an order that does not depend on that of the slices."""
    return list(choose_all(find_usable(slices, port)).used)


def describe_none(wanted: ServicePort, slices: Iterable[EndpointSlice], port: str) -> str:
    """Why no endpoint is ready: `no endpoint of port 80 is ready; 1 not ready, 2 terminating`."""
    counts = Counter(condition_of(one) for _, one in endpoints_of_port(slices, port))
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()) if state not in USABLE)
    return f"no endpoint of port {wanted.port} is ready" + (f"; {states}" if states else "")
