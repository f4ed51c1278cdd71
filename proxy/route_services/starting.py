"""The routes from Services of a process that starts: which ports they may have, and how many.

The law: nothing is opened or followed here. A relay without --routes-from imports no client of the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from proxy.backends.backend import Backend
from proxy.relay.limits import routes_within
from proxy.route_services.ports import Fixed, Ports
from proxy.route_services.wanted import reserved_ports
from proxy.settings import RouteServices
from sidecar.kubernetes.relay_routes import MOST_ROUTES
from sidecar.sockets.descriptors import descriptor_limit, too_few
from sidecar.values.endpoints import Endpoint

if TYPE_CHECKING:
    from proxy.route_services.following import FollowedRoutes


def reserve(
    services: RouteServices | None, listeners: Iterable[Endpoint], admin: Endpoint | None
) -> RouteServices | None:
    """Keep the ports of the flags from the Services: those of the routes, and of the admin port."""
    return None if services is None else replace(services, reserved=reserved_ports(listeners, admin))


def beside(listeners: Sequence[Endpoint], backends: Iterable[Backend]) -> Fixed:
    """What a process has beside the routes from Services: the listeners and the backends of its flags."""
    limit = descriptor_limit()
    return Fixed(listeners, tuple(backends), min(MOST_ROUTES, routes_within(limit)), too_few(limit))


def make_followed_routes(
    services: RouteServices | None, ports: Ports, fixed: Fixed, *, quiet: bool = False
) -> FollowedRoutes | None:
    """The routes from Services, to be followed; None if there are none. With `quiet`, another process logs them."""
    if services is None:
        return None
    from proxy.route_services.following import follow_routes  # noqa: PLC0415

    return follow_routes(services, ports, fixed, quiet=quiet)
