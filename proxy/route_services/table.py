"""The table of routes from Services: the last Services, the routes that they ask for, and the faults.

The law: a thin shell; relay_routes.py decides which routes there are, and open_ports.py opens them. The last Services
count through every outage of the API server. A Service with a fault touches no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import structlog
import trio

from proxy.route_services.open_ports import OpenPorts
from proxy.route_services.ports import LiveRoute
from proxy.route_services.wanted import wanted_route
from proxy.routes import Route
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.relay_routes import RelayRoutes, RouteService, find_relay_routes


class RouteTable:
    """The routes from Services of one process; keep() must be running.

    `reserved` are ports that no Service gets, and who has them. With `quiet`, faults are logged at the level debug:
    another process reports them.
    """

    def __init__(self, ports: OpenPorts, *, reserved: Mapping[int, str], quiet: bool = False) -> None:
        self.status = FollowerStatus(kind="route Service")
        self._ports = ports
        self._reserved = reserved
        self._quiet = quiet
        self._services: dict[str, RouteService | Unreadable] = {}
        self._stale = False
        """Services have changed since the routes were found."""
        self._settled = False
        """The ports of a whole list were opened; stays true."""
        self._found = RelayRoutes()
        self._wanted: list[Route] = []
        self._elsewhere: dict[str, Mapping[int, str]] = {}
        self._logged: frozenset[tuple[str, str]] = frozenset()
        self._changed = trio.Event()
        self._log = structlog.get_logger("proxy.routes")

    def take(self, changes: Mapping[str, RouteService | Unreadable | None]) -> None:
        """Services have come, changed or gone (None)."""
        for key, service in changes.items():
            if service is None:
                self._services.pop(key, None)
            else:
                self._services[key] = service
        self.wake()

    def wake(self) -> None:
        """Services have changed, or a whole list was read."""
        self._stale = True
        self._changed.set()

    def note_elsewhere(self, who: str, failures: Mapping[int, str]) -> None:
        """All ports that another process could not open, and why; this process may have opened them."""
        if failures != self._elsewhere.get(who, {}):
            self._elsewhere[who] = failures
            self._log_faults()

    async def keep(self, stopping: trio.Event) -> None:
        """Keep the ports as the Services ask for, until `stopping`: from then on no port opens or closes here."""
        while not stopping.is_set():
            self._changed = trio.Event()
            now = trio.current_time()
            due = self.step(now) if self.status.synced else inf
            self._settled |= self.status.synced and due > now
            # Between two rounds of many changes, other tasks run.
            await trio.lowlevel.checkpoint()
            with trio.move_on_at(due):
                await self._changed.wait()

    def step(self, now: float) -> float:
        """Open, change and close some ports; returns when the next step is due, on the clock of `now`."""
        if self._stale:
            self._stale = False
            self._found = find_relay_routes(self._services, reserved=self._reserved)
            self._wanted = list(map(wanted_route, self._found.routes))
        due = self._ports.change_some(self._wanted, now)
        self._log_faults()
        return due

    def waits(self) -> str | None:
        """Why the routes are not known yet; None if they are."""
        return None if self._settled else f"waiting for the route Services: {self.status.describe()}"

    @property
    def failures(self) -> Mapping[int, str]:
        """The ports that this process could not open, and why."""
        return self._ports.failures

    @property
    def routes(self) -> list[LiveRoute]:
        """The wanted routes as they are now, in the order of their ports."""
        problems = self._problems()
        return [self._ports.live(route, problems.get(route.listen.port, "")) for route in self._wanted]

    @property
    def faults(self) -> Mapping[str, Sequence[str]]:
        """By Service, `NAMESPACE/NAME`: what is not relayed, and why."""
        faults = {key: list(why) for key, why in self._found.faults.items()}
        problems = self._problems()
        for route in self._wanted:
            if problem := problems.get(route.listen.port):
                for service in route.services:
                    faults.setdefault(service, []).append(f"port {route.stated_port}: {problem}")
        return faults

    def _problems(self) -> Mapping[int, str]:
        """Why ports are not open, or not in every process."""
        elsewhere = {port: f"{who}: {why}" for who, some in self._elsewhere.items() for port, why in some.items()}
        return {**elsewhere, **self._ports.problems}

    def _log_faults(self) -> None:
        """Log each new fault once."""
        faults = frozenset((service, fault) for service, why in self.faults.items() for fault in why)
        warn = self._log.debug if self._quiet else self._log.warning
        for service, fault in sorted(faults - self._logged):
            warn("a route Service has a fault", service=service, fault=fault)
        self._logged = faults
