"""Which controller ports may be probed now.

The law: only LoadBalancer Services behind subjects that have hostnames here; each port at most once a minute, spread
over it; at once when the Service, its pods or their settings changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dnsproxy.operate.decide.controllers import find_controller
from dnsproxy.operate.decide.facts import Facts, ServiceName

INTERVAL: Final = 60.0
"""Seconds between two probes of a port that did not change."""

Port = tuple[ServiceName, int]


@dataclass(frozen=True, slots=True)
class Probed:
    """When a port was last probed, in seconds of one clock, and what it was then."""

    at: float
    fingerprint: str


def due_ports(facts: Facts, last: Mapping[Port, Probed], *, now: float) -> tuple[Port, ...]:
    """The ports that may be probed now, in a stable order."""
    found = [find_controller(one, facts).service for one in facts.subjects if one.hostnames]
    services = {one.name: one for one in found if one is not None and one.type == "LoadBalancer"}
    due = []
    for name, service in sorted(services.items()):
        for port in sorted(set(service.ports)):
            before = last.get((name, port))
            if before is None or before.fingerprint != service.fingerprint or now >= _next(before, name, port):
                due.append((name, port))
    return tuple(due)


def _next(before: Probed, name: ServiceName, port: int) -> float:
    """A full interval later, and then the port's own second of the minute: at most once a minute, never all at once."""
    offset = int.from_bytes(hashlib.sha256(f"{name}:{port}".encode()).digest()[:4], "big") % int(INTERVAL)
    earliest = before.at + INTERVAL
    return earliest + (offset - earliest) % INTERVAL
