"""What is known of an upstream, as a value that another process can send. Pure."""

from __future__ import annotations

import msgspec


class UpstreamReport(msgspec.Struct, array_like=True, frozen=True):
    """The state of one upstream."""

    name: str
    asked: bool
    failing: bool
    looping: bool
    misses: int
    """Consecutive queries without an answer."""
    stream_only: bool
