"""The settings of a relay: one frozen value, made once from the flags and passed on.

The law: pure. No default here contradicts the help text of a flag, and no other module holds a setting. Tested in
test_cli.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proxy.header.protocol import ProxyProtocol
from proxy.routes import Quorum, ReadyWhen, Route

LONG_IDLE: Final = 7440.0
"""Seconds: 2 hours 4 minutes, the least for which an established connection is kept (RFC 5382 section 5)."""


@dataclass(frozen=True, slots=True)
class RouteServices:
    """Services of one namespace that are routes too."""

    namespace: str | None = None
    """None: the pod's own, or that of the kubeconfig's context."""
    reserved: Mapping[int, str] = field(default_factory=dict)
    """Ports that no Service gets, and who has them: `--admin has`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    routes: tuple[Route, ...]
    """Those of the flags."""
    route_services: RouteServices | None = None
    """None: no Service is a route."""
    proxy_protocol: ProxyProtocol = ProxyProtocol.V1
    """For routes without a version of their own."""
    crc32c: bool = False
    """Whether headers of version 2 have a checksum."""
    connect_timeout: float = 5.0
    """From accepting the client to connecting the backend, for all addresses together."""
    idle_timeout: float | None = None
    """Without data in either direction; None: see `idle_limit`."""
    half_close_timeout: float = 120.0
    """Without data in the remaining direction, after one side has sent FIN or RST."""
    advertise: Mapping[int, int] = field(default_factory=dict)
    """The destination port that the header states, by listening port."""
    original_destination: bool = False
    """Whether the header states the destination before a redirect on this computer; not for advertised ports."""
    max_connections: int | None = None
    """Concurrent connections; None: as many as the descriptor limit allows."""
    max_connections_per_client: int | None = None
    """The same for one client address; None: a quarter of all."""
    ready_when: ReadyWhen = (Quorum.ANY,)
    """Which routes must reach their backends for the relay to be ready."""
    resolv_conf: Path = Path("/etc/resolv.conf")
    """The nameservers and options for resolving the names of backends."""
    kubeconfig: str | None = None
    """For Services, as routes and as backends; None: KUBECONFIG, the pod's own account, ~/.kube/config."""
    context: str | None = None
    tap: bool = True
    """Whether the admin port shows connections as they end."""
    access_log: bool = False
    """Whether stdout gets a line for each connection that has ended."""

    def idle_limit(self, *, header: bool) -> float:
        """Seconds without data after which a connection ends, by whether the relay has written a header.

        Without a header the relay is one of the neighbours of a web port (SSH, a database, MQTT), whose connections had
        no limit before; the kernel finds the peers that are gone.
        """
        if self.idle_timeout is not None:
            return self.idle_timeout
        return LONG_IDLE if header else math.inf

    def protocol_of(self, route: Route) -> ProxyProtocol:
        """The header of a route's connections."""
        return self.proxy_protocol if route.proxy_protocol is None else route.proxy_protocol
