"""The settings of `dnsproxy serve`: frozen, checked, complete. The command line makes them, nothing changes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dnsproxy.forward.settings import ForwardSettings, refuse_loop
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.ownership import OwnershipSettings
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.cluster_sources import ClusterSettings
from sidecar.endpoints import Endpoint
from sidecar.errors import StartError


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
