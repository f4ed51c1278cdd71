"""The settings of forwarding: frozen, checked, complete."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class ForwardSettings:
    """Whom to ask, how, and how much may wait."""

    upstreams: tuple[Endpoint, ...]
    """In the order in which they are asked; a TlsEndpoint is asked over TLS."""
    outstanding: int = 10_000
    """Queries that may wait at a time."""
    per_client: int = 1_000
    """The same for one client address (CVE-2024-33655: a client must not be able to gather replies for one pulse)."""
    rotate: bool = False
    """Begin with another upstream each time (`options rotate` of resolv.conf)."""
    attempts: int = 2
    """Datagrams that one upstream gets for a query at most; 1 or 2."""
    use_tcp: bool = False
    """Ask over TCP from the start (`options use-vc`)."""
    detect_loops: bool = True
    """Ask each upstream now and then for a name that only we can be asked for."""
