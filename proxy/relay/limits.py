"""How many connections a relay takes at once, so that it never runs out of descriptors.

The law: what is set aside for pipes and for what is no connection is not promised to clients.
"""

from __future__ import annotations

import resource
from typing import Final

import structlog

from proxy.relay.splice import pipes_within

# Descriptors for what is no connection: listeners, the admin port, look-ups, the log.
_RESERVED: Final = 64

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def descriptor_limit() -> int:
    """How many this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_048_576 if soft == resource.RLIM_INFINITY else soft


def connection_limit(wanted: int | None, *, descriptors: int) -> int:
    """What was asked for, but no more than two descriptors a connection beside those of the pipes and of the rest."""
    left = descriptors - 2 * pipes_within(descriptors)
    possible = max(1, (left - min(_RESERVED, left // 2)) // 2)
    if wanted is not None and wanted > possible:
        log.warning(
            "the descriptor limit allows fewer connections", asked=wanted, possible=possible, descriptors=descriptors
        )
    return possible if wanted is None else min(wanted, possible)
