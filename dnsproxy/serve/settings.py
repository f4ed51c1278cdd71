"""The settings of `dnsproxy serve`: frozen, checked, complete. The command line makes them, nothing changes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dnsproxy.forward.nameservers import refuse_loop
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.ownership import OwnershipSettings
from dnsproxy.hostnames.verdict import Targets
from dnsproxy.snapshot.format import settings_of
from dnsproxy.sources.gateway.source import GatewayOptions
from dnsproxy.sources.ingress_source import IngressOptions
from sidecar.endpoints import Endpoint
from sidecar.errors import StartError


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How to reach the API server and what to read from it."""

    ingress: IngressOptions | None = None
    gateway: GatewayOptions | None = None
    services: bool = False
    """Whether Services with a hostname of their own count."""
    kubeconfig: str | None = None
    context: str | None = None

    def shown(self, server: str) -> dict[str, str]:
        """What decides which claims there are, for a snapshot to be compared by; `server`: the API server's URL."""
        sources = {"ingress": self.ingress, "gateway": self.gateway}
        given = {name: options for name, options in sources.items() if options is not None}
        names = [*given, *(["service"] if self.services else [])]
        flags = {"API server": server, "sources": ",".join(names)}
        return flags | {
            key: text for name, options in given.items() for key, text in settings_of(name, options).items()
        }


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """All that a server is told."""

    listen: tuple[Endpoint, ...]
    """May be empty where sockets are inherited."""
    forwarding: ForwardSettings
    targets: Targets
    guards: Guards
    ownership: OwnershipSettings = field(default_factory=OwnershipSettings)
    ttl: int = 5
    hosts: tuple[Claim, ...] = ()
    hosts_file: Path | None = None
    cluster: ClusterSettings | None = None
    """None: no source in a cluster."""
    admin: Endpoint | None = None
    shared: bool = False
    """Let other processes listen on the same ports."""
    inherit: bool = False
    """Answer on the sockets that systemd opened, too."""
    snapshot: Path | None = None
    """Where to keep what the cluster claims, for a start without its API server."""
    resolv_conf: Path | None = None
    """The file that `forwarding` was read from and that is followed; None: upstreams were named otherwise."""
    lameduck: float = 5.0
    """Seconds after the first signal in which all is answered as before, while /readyz says no."""
    drain: float = 5.0
    """Seconds after those for what is under way."""

    def refuse_loop(self, listening: Iterable[Endpoint]) -> None:
        """Raises StartError, naming the flag, for an upstream that is one of the endpoints that we listen at."""
        try:
            refuse_loop(self.forwarding.upstreams, listening=listening)
        except ValueError as error:
            flag = f"--resolv-conf {self.resolv_conf}: nameserver" if self.resolv_conf else "--upstream"
            raise StartError(f"{flag} {error}") from error
