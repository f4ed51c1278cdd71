"""What one run of a command finds. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """Of one process, from its start to its end."""

    status: int
    seconds: float
    cpu: float
    """Seconds on a processor."""
    peak: float
    """MiB that were resident at most."""
    requests: int
    """To the API server."""
    served: float
    """Seconds of processor time of the API server."""
