"""The settings of `dnsproxy serve`: frozen, checked, complete. The command line makes them, nothing changes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dnsproxy.claims import Claim
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.guards import Guards
from dnsproxy.plan import Targets
from dnsproxy.sources.ingress_source import IngressOptions
from sidecar.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How to reach the API server and what to read from it."""

    ingress: IngressOptions
    kubeconfig: str | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """All that a server is told."""

    listen: tuple[Endpoint, ...]
    forwarding: ForwardSettings
    targets: Targets
    guards: Guards
    ttl: int = 5
    hosts: tuple[Claim, ...] = ()
    hosts_file: Path | None = None
    cluster: ClusterSettings | None = None
    """None: no source in a cluster."""
    admin: Endpoint | None = None
    drain: float = 5.0
    """Seconds for what is under way after the first signal."""
