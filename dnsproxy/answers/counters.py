"""Counters of the hot path: plain integers, because one call into a metrics library costs as much as an answer.

The law: only the thread of the event loop writes here; serve/metrics.py turns the numbers into metrics on each scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Upper bounds of the histogram of durations, in seconds."""

_RCODES = 24


@dataclass(slots=True)
class Durations:
    """A histogram of seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float, *, times: int = 1) -> None:
        """Count `times` requests that took this long."""
        self.total += seconds * times
        self.counts[bisect_left(BUCKETS, seconds)] += times


@dataclass(slots=True)
class Counters:
    """The counts of a server since its start."""

    requests_udp: int = 0
    requests_tcp: int = 0
    table_by_rcode: list[int] = field(default_factory=lambda: [0] * _RCODES)
    own_by_rcode: list[int] = field(default_factory=lambda: [0] * _RCODES)
    """Errors that this server made: refusals, malformed queries, upstreams without a reply."""
    upstream_by_rcode: list[int] = field(default_factory=lambda: [0] * _RCODES)
    dropped: int = 0
    failures: int = 0
    """Queries that ended in an unexpected exception."""
    table_seconds: Durations = field(default_factory=Durations)
    forward_seconds: Durations = field(default_factory=Durations)
    forward_sends: int = 0
    forward_retries: int = 0
    forward_timeouts: int = 0
    forward_errors: int = 0
    forward_mismatches: int = 0
    """Datagrams from upstreams that answered no query."""
    forward_joined: int = 0
    """Queries that shared the reply to an equal query."""
    forward_overload: int = 0
    forward_stale: int = 0
    """Queries that waited too long in the queue of this process to be forwarded."""
    forward_replaced: int = 0
    """Replies of upstreams in which addresses were replaced."""
    tcp_connections: int = 0
    tcp_refused: int = 0
    tcp_evicted: int = 0
    """Idle connections that ended to make room for new ones."""
