"""The registry of metrics that a program's admin port shows.

The law: one of its own for each server, never prometheus_client's global one, so that two in one process do not meet.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.registry import Collector


def make_registry(*collectors: Collector) -> CollectorRegistry:
    """Some collectors' figures, with the process's and the interpreter's beside them."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry
