"""What a relay counts: plain integers that the byte path adds to.

The law: no metric is known here; proxy/admin/metrics.py chooses names and labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from proxy.backends.health import Cause


@dataclass(slots=True)
class Counters:
    """Counts since the start."""

    connections: int = 0
    active: int = 0
    refused: int = 0
    """Clients that had as many connections already as one may have."""
    octets_to_backend: int = 0
    """Payload alone, without headers of ours."""
    octets_to_client: int = 0
    backend_errors: dict[Cause, int] = field(default_factory=lambda: dict.fromkeys(Cause, 0))
