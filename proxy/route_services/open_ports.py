"""The open ports of routes from Services, and those that could not be opened.

The law: a shell over changes.py that waits for nothing. A port that cannot be opened touches no other port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from proxy.backends.backend import Backend
from proxy.backends.own_listeners import OwnListeners
from proxy.backends.service_watch import ServiceWatches
from proxy.relay.limits import descriptors_of_routes
from proxy.route_services.backends import RouteBackends
from proxy.route_services.changes import Action, Failed, RouteChange, after_failure, plan_changes
from proxy.route_services.ports import Fixed, LiveRoute, Ports
from proxy.routes import Route
from sidecar.values.errors import StartError

AT_ONCE: Final = 50
"""Ports per round, so that opening a thousand of them delays no connection by more than a few milliseconds."""
SWEEP_SECONDS: Final = 1.0
"""Until the next look at a backend without a route, for whose addresses clients wait."""


class OpenPorts:
    """The ports of one process. With `quiet`, changes are logged at the level debug: another process reports them."""

    def __init__(self, ports: Ports, watches: ServiceWatches, fixed: Fixed, *, quiet: bool = False) -> None:
        self._ports = ports
        self._fixed = fixed
        self._backends = RouteBackends(watches, OwnListeners(fixed.listeners))
        self._opened: dict[int, tuple[Route, Backend]] = {}
        self._failed: dict[int, Failed] = {}
        self._excess: frozenset[int] = frozenset()
        self._quiet = quiet
        self._log = structlog.get_logger("proxy.routes")

    @property
    def failures(self) -> Mapping[int, str]:
        """The ports that could not be opened, and why."""
        return {port: failed.reason for port, failed in self._failed.items()}

    @property
    def problems(self) -> Mapping[int, str]:
        """Why ports are not open."""
        return {**dict.fromkeys(self._excess, self._fixed.no_room), **self.failures}

    def live(self, route: Route, problem: str) -> LiveRoute:
        """A wanted route as it is now."""
        if route.listen.port not in self._opened:
            return LiveRoute(route, None, problem or "not open yet")
        return LiveRoute(*self._opened[route.listen.port], problem)

    def change_some(self, wanted: Sequence[Route], now: float) -> float:
        """Make changes that are due, AT_ONCE at most; returns when the next ones are, on the clock of `now`."""
        ports = {route.listen.port for route in wanted}
        self._failed = {port: failed for port, failed in self._failed.items() if port in ports}
        opened = {port: route for port, (route, _) in self._opened.items()}
        plan = plan_changes(opened, wanted, self._failed, most=self._fixed.most, now=now)
        self._excess = frozenset(route.listen.port for route in plan.excess)
        part = plan.changes[:AT_ONCE]
        for change in part:
            self._make(change, now)
        remains = self._backends.sweep()
        if any(change.action is not Action.CHANGE for change in part):
            self._note_listeners()
        self._ports.set_aside(descriptors_of_routes(listeners=len(self._opened), services=self._backends.services))
        if len(part) < len(plan.changes):
            return now
        again = (self._failed.get(change.route.listen.port) for change in part)
        retries = [failed.retry_at for failed in again if failed is not None]
        return min([plan.due, *retries, *([now + SWEEP_SECONDS] if remains else [])])

    def _make(self, change: RouteChange, now: float) -> None:
        match change.action:
            case Action.CLOSE:
                self._close(change.route)
            case Action.CHANGE:
                self._change(change.route)
            case Action.OPEN:
                self._open(change.route, now)

    def _close(self, route: Route) -> None:
        self._ports.close_port(route)
        del self._opened[route.listen.port]
        self._backends.give_back(route)
        self._tell("route closed", route)

    def _change(self, route: Route) -> None:
        before, _ = self._opened[route.listen.port]
        # First the new one: the watches of a Service that both have go on.
        backend = self._backends.take(route)
        self._ports.change_port(route, backend)
        self._opened[route.listen.port] = route, backend
        self._backends.give_back(before)
        self._tell("route changed", route)

    def _open(self, route: Route, now: float) -> None:
        port = route.listen.port
        backend = self._backends.take(route)
        try:
            self._ports.open_port(route, backend)
        except StartError as error:
            self._backends.give_back(route)
            self._failed[port] = after_failure(self._failed.get(port), reason=str(error), now=now)
            return
        self._failed.pop(port, None)
        self._opened[port] = route, backend
        self._tell("route opened", route)

    def _note_listeners(self) -> None:
        """Backends leave out the addresses at which this relay listens now."""
        opened = (route.listen for route, _ in self._opened.values())
        listeners = OwnListeners((*self._fixed.listeners, *opened))
        self._backends.set_listeners(listeners)
        for backend in self._fixed.backends:
            backend.set_listeners(listeners)

    def _tell(self, event: str, route: Route) -> None:
        tell = self._log.debug if self._quiet else self._log.info
        exceptions = {address: str(protocol) for address, protocol in route.exceptions}
        tell(
            event,
            listen=str(route.listen),
            backend=str(route.backend),
            proxy_protocol=str(route.proxy_protocol),
            services=list(route.services),
            **({"exceptions": exceptions} if exceptions else {}),
        )
