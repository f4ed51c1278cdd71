"""Wanted routes: what the route Services ask for, in the form of the relay's own routes.

The law: pure. sidecar.kubernetes.relay_routes decides which Service gets which port; here are only the relay's words
for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proxy.header.protocol import ProxyProtocol
from proxy.routes import ANY_HOST, ROUTE_FLAG, Route, ServicePort
from sidecar.kubernetes.relay_routes import RelayRoute
from sidecar.values.endpoints import Endpoint

_WITH_CLIENT = frozenset({ProxyProtocol.V1, ProxyProtocol.V2})


def wanted_route(found: RelayRoute) -> Route:
    """The route of a port on all addresses, IPv4 and IPv6."""
    return Route(
        Endpoint(ANY_HOST, found.listen),
        ServicePort(found.namespace, found.backend, found.port),
        ProxyProtocol(found.header),
        found.port,
        tuple((address, ProxyProtocol(header)) for address, header in sorted(found.endpoint_headers.items())),
        found.services,
    )


def holds_back(route: Route) -> bool:
    """Whether new endpoints wait: a pod that does not take the relay's header would fail its connections."""
    return route.proxy_protocol in _WITH_CLIENT


def reserved_ports(fixed: Iterable[Endpoint], admin: Endpoint | None) -> Mapping[int, str]:
    """The ports that no Service gets, and who has them: listeners of flags, and the admin port."""
    taken = {one.port: f"{ROUTE_FLAG} has" for one in fixed}
    return taken if admin is None else {**taken, admin.port: "--admin has"}
