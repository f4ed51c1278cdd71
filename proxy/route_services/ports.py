"""What opens and closes the ports of routes from Services: the relay, or for its workers the supervisor.

The law: an interface and values; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from proxy.backends.backend import Backend
from proxy.routes import Route
from sidecar.kubernetes.relay_routes import MOST_ROUTES
from sidecar.values.endpoints import Endpoint


class Ports(Protocol):
    """The ports of one process."""

    def open_port(self, route: Route, backend: Backend) -> None:
        """Open the port of a route. Raises StartError."""

    def change_port(self, route: Route, backend: Backend) -> None:
        """Relay the further clients of an open port as another route says."""

    def close_port(self, route: Route) -> None:
        """Close an open port; its connections live on."""

    def set_aside(self, descriptors: int) -> None:
        """Adapt limits to the descriptors that these ports and the watches of their backends take."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a process has beside the routes from Services, and the room that it has for them."""

    listeners: Sequence[Endpoint] = ()
    """Those of the flags' routes."""
    backends: Sequence[Backend] = ()
    """Those of the flags' routes."""
    most: int = MOST_ROUTES
    """Routes from Services for which there are descriptors."""
    no_room: str = ""
    """Why there are no more."""


@dataclass(frozen=True, slots=True)
class LiveRoute:
    """A route as it is now."""

    route: Route
    """With the port that it really has."""
    backend: Backend | None
    """None if its port is not open."""
    problem: str = ""
    """Why its port is not open, or not in every process; empty if it is."""
