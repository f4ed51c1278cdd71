"""Route Services and routes for tests, and ports and watches that a test plays."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from proxy.backends.backend import Address, Backend
from proxy.backends.service_watch import ServiceWatches
from proxy.header.protocol import ProxyProtocol
from proxy.relay.relay import LISTENING
from proxy.routes import ANY_HOST, Route, ServicePort
from sidecar.kubernetes.relay_routes import RouteService
from sidecar.sockets.listeners import listen_tcp
from sidecar.values.endpoints import Endpoint

OWN: Final = "switchback"


def service(
    name: str, *ports: tuple[int, Any], to: str | None = "web/shop", created: str = "2026-11-01T00:00:00Z", **named: str
) -> dict[str, RouteService]:
    """A Service with (port, targetPort) pairs; annotations without their prefix, `_` for `-`."""
    annotations = {f"switchback.dev/{key.replace('_', '-')}": text for key, text in named.items()}
    if to is not None:
        annotations["switchback.dev/relay-to"] = to
    listed = [{"port": port, "targetPort": target} for port, target in ports]
    metadata = {"name": name, "namespace": OWN, "creationTimestamp": created, "annotations": annotations}
    made = msgspec.convert({"metadata": metadata, "spec": {"ports": listed}}, RouteService)
    return {f"{OWN}/{name}": made}


def route(listen: int, backend: str = "shop", **changes: Any) -> Route:
    """A route of a Service to port 443 of a backend."""
    usual = Route(
        Endpoint(ANY_HOST, listen), ServicePort("web", backend, 443), ProxyProtocol.V1, 443, services=(f"{OWN}/a",)
    )
    return replace(usual, **changes)


class KnownWatches(ServiceWatches):
    """Knows the address of every Service, without an API server."""

    def __init__(self, *addresses: Address) -> None:
        super().__init__()
        self.known = addresses
        self.backends: dict[Backend, bool] = {}
        """Those that are watched, and whether new endpoints are held back."""

    def __len__(self) -> int:
        return len({backend.destination for backend in self.backends})

    def add(self, backend: Backend, *, holds: bool = False) -> None:
        assert backend not in self.backends
        self.backends[backend] = holds
        if self.known:
            backend.take(self.known)

    def remove(self, backend: Backend) -> None:
        del self.backends[backend]


class RealPorts:
    """Ports that really listen, and relay nothing."""

    def __init__(self) -> None:
        self.opened: dict[int, tuple[Route, Backend]] = {}
        self.set_aside_last = 0
        self._sockets: dict[int, socket.socket] = {}

    def open_port(self, route: Route, backend: Backend) -> None:
        port = route.listen.port
        assert port not in self.opened
        self._sockets[port] = listen_tcp(route.listen, flag=LISTENING)
        self.opened[port] = route, backend

    def change_port(self, route: Route, backend: Backend) -> None:
        assert route.listen.port in self.opened
        self.opened[route.listen.port] = route, backend

    def close_port(self, route: Route) -> None:
        assert self.opened.pop(route.listen.port)[0] == route
        self._sockets.pop(route.listen.port).close()

    def set_aside(self, descriptors: int) -> None:
        self.set_aside_last = descriptors

    def descriptor(self, port: int) -> int:
        return self._sockets[port].fileno()

    def close(self) -> None:
        for one in self._sockets.values():
            one.close()


def listening(ports: Mapping[int, object]) -> set[int]:
    """Those of some ports that accept a connection."""
    found = set()
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                found.add(port)
    return found
