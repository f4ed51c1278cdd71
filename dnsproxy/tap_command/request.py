"""What one `dnsproxy tap` is asked to show, as a value.

The law: pure; the command line makes it, and nothing changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import ADMIN_PORT
from dnsproxy.tap.filters import TapFilter
from sidecar.values.endpoints import Endpoint

LOCAL = Endpoint("127.0.0.1", ADMIN_PORT)
"""The admin port of a server on this computer, or in this pod."""


@dataclass(frozen=True, slots=True)
class ServicePods:
    """All pods of a Service, and how to reach them: through the API server."""

    ref: ObjectRef
    port: int = ADMIN_PORT
    """The admin port of each pod."""
    kubeconfig: str | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class TapRequest:
    """Which queries to show, of which server, and until when."""

    wanted: TapFilter = field(default_factory=TapFilter)
    place: Endpoint | ServicePods = LOCAL
    """One admin port, or the pods of a Service."""
    count: int | None = None
    """End when so many were shown; None: when the user ends it."""
    seconds: float | None = None
    """End after this long at most."""
    json: bool = False
    """Print JSON in place of text."""
