"""What a relay is told: one frozen value, made once at the edge and handed down.

The law: no default here contradicts the help text of the flags; nothing else holds a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proxy.header.protocol import ProxyProtocol, Writer, writer
from proxy.routes import Route


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    routes: tuple[Route, ...]
    proxy_protocol: ProxyProtocol = ProxyProtocol.V1
    """For the routes that name none themselves."""
    crc32c: bool = False
    """Whether headers of version 2 carry a checksum."""
    connect_timeout: float = 5.0
    """From the client's connection to the backend's, all addresses together."""
    idle_timeout: float = 600.0
    """Without an octet in either direction."""
    half_close_timeout: float = 120.0
    """Without an octet in the direction that is left, once one side has finished sending."""
    advertise: Mapping[int, int] = field(default_factory=dict)
    """Destination port to state in the header, by listening port."""
    original_destination: bool = False
    """Whether to state where the client was going before a redirect of this computer; not for advertised ports."""
    max_connections: int | None = None
    """Clients at the same time; None: as many as the descriptor limit allows."""
    max_connections_per_client: int | None = None
    """The same for one client address; None: as many as in all."""
    resolv_conf: Path = Path("/etc/resolv.conf")
    """Which nameservers to ask for the names of backends, and how."""
    kubeconfig: str | None = None
    """For backends that are Services; None: KUBECONFIG, the pod's own account, ~/.kube/config."""
    context: str | None = None

    def protocol_of(self, route: Route) -> ProxyProtocol:
        """Which header goes in front of the connections of a route."""
        return self.proxy_protocol if route.proxy_protocol is None else route.proxy_protocol

    def writer_of(self, route: Route) -> Writer:
        """What writes the headers of a route."""
        return writer(self.protocol_of(route), checksum=self.crc32c)
