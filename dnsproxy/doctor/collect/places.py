"""Places: the Services and servers to look at.

The law: a value; a user names each, or it is found.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.object_ref import ObjectRef
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Places:
    """Services and servers, as far as the user named them."""

    dns_service: ServiceRef
    service: ObjectRef
    """dnsproxy's own Service."""
    relay: ObjectRef | None = None
    """None: the Service in dnsproxy's settings, the route Services, or else `relay` in dnsproxy's namespace."""
    dns: Endpoint | None = None
    public: Endpoint | None = None
    admin: Endpoint | None = None
    relay_admin: Endpoint | None = None
    sources: tuple[str, ...] = ()
    """Values of `--source`, beside those that dnsproxy's settings name."""
