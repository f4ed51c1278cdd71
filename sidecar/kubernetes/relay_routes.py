"""Relay routes: where the relay listens for the route Services, and where it dials.

The law: pure; the routes depend on the Services alone, never on the order in which they came. A port on which two
different routes want to listen belongs to the older Service, then to the first by name. A fault takes its own Service
or port out, and moves no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from sidecar.kubernetes.route_services import (
    BALANCERS,
    DEFAULT_HEADER,
    ENDPOINT_HEADERS,
    FOR,
    PORT_BACKENDS,
    PROXY_PROTOCOL,
    RELAY_TO,
    RELEASED,
    EndpointHeaders,
    PortBackends,
    PortHeaders,
    parse_endpoint_headers,
    parse_headers,
    parse_port_backends,
    parse_relay_to,
)
from sidecar.values.endpoints import MAXIMUM_PORT

MOST_ROUTES: Final = 1000
"""Routes of one relay: each is a listening socket, and each of their backends two watches."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"

_TCP: Final = "TCP"
_NEEDED: Final = "the relay needs itself"


class RouteAnnotations(msgspec.Struct, frozen=True, gc=False):
    """Our annotations, as text."""

    relay_to: str | None = msgspec.field(default=None, name=RELAY_TO)
    port_backends: str | None = msgspec.field(default=None, name=PORT_BACKENDS)
    headers: str | None = msgspec.field(default=None, name=PROXY_PROTOCOL)
    endpoint_headers: str | None = msgspec.field(default=None, name=ENDPOINT_HEADERS)
    subjects: str | None = msgspec.field(default=None, name=FOR)
    balancers: str | None = msgspec.field(default=None, name=BALANCERS)
    released: str | None = msgspec.field(default=None, name=RELEASED)


class RouteLabels(msgspec.Struct, frozen=True, gc=False):
    """The label that says which program writes the Service."""

    managed_by: str | None = msgspec.field(default=None, name=MANAGED_BY)


class RouteMetadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    """Who the Service is, and our annotations."""

    uid: str = ""
    annotations: RouteAnnotations | None = None
    labels: RouteLabels | None = None


class RoutePort(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One port, and where the pods listen for it; absent or 0: at the same number."""

    port: int = 0
    name: str | None = None
    protocol: str | None = None
    target_port: int | str | None = None


class RouteSpec(msgspec.Struct, frozen=True, gc=False):
    """The ports, and the pods that take their connections."""

    type: str | None = None
    selector: dict[str, str] | None = None
    ports: tuple[RoutePort, ...] | None = None
    cluster_ips: tuple[str, ...] | None = msgspec.field(default=None, name="clusterIPs")


class RouteService(msgspec.Struct, frozen=True, gc=False):
    """A Service of our own namespace: a route Service, if it has the annotation RELAY_TO."""

    metadata: RouteMetadata
    spec: RouteSpec | None = None

    @property
    def annotations(self) -> RouteAnnotations:
        """Its annotations."""
        return self.metadata.annotations or RouteAnnotations()


def route_service_collection(namespace: str) -> Collection[RouteService]:
    """All Services of our own namespace. RBAC: list and watch services there."""
    return Collection("route Service", f"/api/v1/namespaces/{namespace}/services", RouteService)


@dataclass(frozen=True, slots=True)
class RelayRoute:
    """A port on which the relay listens, and its backend."""

    listen: int
    namespace: str
    backend: str
    """The name of the backend's Service."""
    port: int
    """The port that clients dial, at the route Service and at the backend alike; the header states it."""
    header: str = DEFAULT_HEADER
    endpoint_headers: Mapping[str, str] = field(default_factory=dict)
    """By address of an endpoint: the header that it takes instead."""
    services: tuple[str, ...] = ()
    """The route Services, `NAMESPACE/NAME`, the oldest first."""

    def __str__(self) -> str:
        return f"{self.listen}={self.namespace}/{self.backend}:{self.port},{self.header}"


@dataclass(frozen=True, slots=True)
class RelayRoutes:
    """All routes by listening port, and the faults."""

    routes: tuple[RelayRoute, ...] = ()
    """In the order of their listening ports."""
    faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By route Service, `NAMESPACE/NAME`: what is not relayed, and why."""


def find_relay_routes(
    services: Mapping[str, RouteService | Unreadable], *, reserved: Mapping[int, str] | Iterable[int] = ()
) -> RelayRoutes:
    """The routes of the Services of our namespace, by `NAMESPACE/NAME`.

    `reserved` are ports that no Service gets; as a mapping, with who has them, for the fault: `--admin has`.
    """
    taken: dict[int, RelayRoute] = {}
    faults: dict[str, tuple[str, ...]] = {}
    kept = reserved if isinstance(reserved, Mapping) else dict.fromkeys(reserved, _NEEDED)
    for key, service in sorted(services.items(), key=_age):
        found, why = _routes_of(key, service, services, kept)
        why += [fault for route in found if (fault := _take(route, taken))]
        if why:
            faults[key] = tuple(why)
    return RelayRoutes(tuple(route for _, route in sorted(taken.items())), faults)


def _routes_of(
    key: str,
    service: RouteService | Unreadable,
    services: Mapping[str, RouteService | Unreadable],
    reserved: Mapping[int, str],
) -> tuple[list[RelayRoute], list[str]]:
    """The routes that one Service asks for, and its faults."""
    if isinstance(service, Unreadable):
        return [], [f"unreadable: {service.reason}"]
    text = service.annotations.relay_to
    if text is None:
        return [], []
    try:
        namespace, name = parse_relay_to(text)
    except ValueError as error:
        return [], [f"{RELAY_TO}: {error}"]
    if _is_own_relay(f"{namespace}/{name}", service, services):
        return [], [f"{RELAY_TO}: {namespace}/{name} leads to this relay itself"]
    try:
        headers, endpoints = _headers_of(service)
        backends = _port_backends_of(service)
    except ValueError as error:
        return [], [str(error)]
    base = RelayRoute(0, namespace, name, 0, services=(key,))
    found: list[RelayRoute] = []
    faults: list[str] = []
    for port in _ports_of(service):
        there, backend = backends.get(port.port, (namespace, name))
        if _is_own_relay(f"{there}/{backend}", service, services):
            faults.append(f"{PORT_BACKENDS}: {there}/{backend}, for port {port.port}, leads to this relay itself")
            continue
        try:
            listen = _listening_port(port, reserved)
        except ValueError as error:
            faults.append(str(error))
            continue
        exceptions = {address: header for (number, address), header in endpoints.items() if number == port.port}
        route = replace(base, listen=listen, namespace=there, backend=backend, port=port.port)
        found.append(replace(route, header=headers.of(port.port), endpoint_headers=exceptions))
    return found, faults if _ports_of(service) else ["it has no port"]


def _port_backends_of(service: RouteService) -> PortBackends:
    """Raises ValueError, which names the annotation."""
    try:
        return parse_port_backends(service.annotations.port_backends or "")
    except ValueError as error:
        raise ValueError(f"{PORT_BACKENDS}: {error}") from None


def _headers_of(service: RouteService) -> tuple[PortHeaders, EndpointHeaders]:
    """Raises ValueError, which names the annotation."""
    annotations = service.annotations
    try:
        headers = PortHeaders() if annotations.headers is None else parse_headers(annotations.headers)
    except ValueError as error:
        raise ValueError(f"{PROXY_PROTOCOL}: {error}") from None
    try:
        return headers, parse_endpoint_headers(annotations.endpoint_headers or "")
    except ValueError as error:
        raise ValueError(f"{ENDPOINT_HEADERS}: {error}") from None


def _ports_of(service: RouteService) -> tuple[RoutePort, ...]:
    return (service.spec.ports or ()) if service.spec else ()


def _listening_port(port: RoutePort, reserved: Mapping[int, str]) -> int:
    """Raises ValueError with the reason."""
    if (port.protocol or _TCP) != _TCP:
        raise ValueError(f"port {port.port} is {port.protocol}; only TCP is relayed")
    listen = port.target_port or port.port
    if not isinstance(listen, int) or not 0 < listen <= MAXIMUM_PORT:
        raise ValueError(f"the targetPort of port {port.port} is {listen!a}; name a number from 1 to {MAXIMUM_PORT}")
    if listen in reserved:
        raise ValueError(f"the targetPort of port {port.port} is {listen}, which {reserved[listen]}")
    return listen


def _is_own_relay(backend: str, service: RouteService, services: Mapping[str, RouteService | Unreadable]) -> bool:
    """Whether the backend is a route Service too, or selects the same pods."""
    other = services.get(backend)
    if not isinstance(other, RouteService):
        return False
    selector = service.spec.selector if service.spec else None
    same = bool(selector) and other.spec is not None and other.spec.selector == selector
    return same or other.annotations.relay_to is not None


def _take(route: RelayRoute, taken: dict[int, RelayRoute]) -> str:
    """Add a route of the next younger Service; why not, or empty."""
    other = taken.get(route.listen)
    if other is None:
        if len(taken) >= MOST_ROUTES:
            return f"port {route.port} is left out: a relay has at most {MOST_ROUTES} routes"
        taken[route.listen] = route
        return ""
    if _destination(other) != _destination(route):
        return f"the targetPort of port {route.port} is {route.listen}, which {other.services[0]} has for another route"
    merged = {**route.endpoint_headers, **other.endpoint_headers}
    together = tuple(dict.fromkeys((*other.services, *route.services)))
    taken[route.listen] = replace(other, endpoint_headers=merged, services=together)
    return ""


def _destination(route: RelayRoute) -> tuple[str, str, int, str]:
    return route.namespace, route.backend, route.port, route.header


def _age(item: tuple[str, RouteService | Unreadable]) -> tuple[str, str]:
    key, service = item
    return service.metadata.creation_timestamp or "", key
