"""The backends of routes from Services: each is followed from its first route to its last.

The law: routes share a backend if they name the same Service port and agree about hold-back. A backend that is given
back and taken again before a sweep stays as it is.
"""

from __future__ import annotations

from collections import Counter

from proxy.backends.backend import Backend
from proxy.backends.own_listeners import OwnListeners
from proxy.backends.service_watch import ServiceWatches
from proxy.route_services.wanted import holds_back
from proxy.routes import Route, ServicePort
from sidecar.values.host_port import HostPort

_Key = tuple[HostPort | ServicePort, bool]


class RouteBackends:
    """The backends in use; `listeners` are those of this relay."""

    def __init__(self, watches: ServiceWatches, listeners: OwnListeners) -> None:
        self._watches = watches
        self._listeners = listeners
        self._backends: dict[_Key, Backend] = {}
        self._uses: Counter[_Key] = Counter()

    @property
    def services(self) -> int:
        """How many Services are watched."""
        return len(self._watches)

    def take(self, route: Route) -> Backend:
        """The backend of one more route."""
        key = _key_of(route)
        backend = self._backends.get(key)
        if backend is None:
            backend = self._backends[key] = Backend(route.backend, listeners=())
            backend.set_listeners(self._listeners)
            self._watches.add(backend, holds=holds_back(route))
        self._uses[key] += 1
        return backend

    def give_back(self, route: Route) -> None:
        """A route has ended."""
        self._uses[_key_of(route)] -= 1

    def sweep(self) -> bool:
        """Stop following the backends without a route; whether one remains, because clients wait for its addresses."""
        unused = [key for key, count in self._uses.items() if not count]
        for key in unused:
            if not self._backends[key].is_awaited:
                self._watches.remove(self._backends.pop(key))
                del self._uses[key]
        return any(key in self._uses for key in unused)

    def set_listeners(self, listeners: OwnListeners) -> None:
        """The listeners of this relay have changed."""
        self._listeners = listeners
        for backend in self._backends.values():
            backend.set_listeners(listeners)


def _key_of(route: Route) -> _Key:
    return route.backend, holds_back(route)
