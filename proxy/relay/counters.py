"""What a relay counts, as plain integers.

The law: pure. The byte path adds to these integers and knows no metric; proxy.admin.metrics chooses names and labels.
Tested in tests/proxy/admin/test_metrics.py.
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
    """Clients that had as many connections as one address may have."""
    headers_refused: int = 0
    """Clients that began with a PROXY header: their own on a route without headers, or that of another connection."""
    octets_to_backend: int = 0
    """Payload only, without the PROXY headers that the relay adds."""
    octets_to_client: int = 0
    backend_errors: dict[Cause, int] = field(default_factory=lambda: dict.fromkeys(Cause, 0))
