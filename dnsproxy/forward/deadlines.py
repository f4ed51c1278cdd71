"""The deadlines of an upstream: what happens to a query whose upstream is silent, and when.

The law: every time limit towards an upstream stands here, in seconds, and nothing else does. CoreDNS waits two seconds
for a reply and one second for its health probe; after that it treats this server as dead.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

# --- A query ---

TICK: Final = 0.05
"""Time between two checks of all flights."""
RETRY: Final = 0.6
"""Silence before the next upstream is asked, and again before the one after it."""
STREAM_AFTER: Final = 1.1
"""Silence before TCP is tried: some paths lose only UDP."""
GIVE_UP: Final = 1.7
"""Silence before SERVFAIL; with one tick on top it leaves within the two seconds of CoreDNS."""
PROBE_GIVE_UP: Final = 0.5
"""The same for `. NS`, the health probe of CoreDNS: any answer within a second means that this server is alive."""
IMPATIENT: Final = 0.25
"""Time after which an equal query counts as a retry by its client, and the next upstream is asked."""


class Step(Enum):
    """The next thing that happens to a query without a reply."""

    RETRY = "ask the next upstream"
    STREAM = "try TCP too"
    GIVE_UP = "SERVFAIL"


Steps = tuple[tuple[float, Step], ...]
"""Seconds since the start, and the step that is due then."""

STEPS: Final[Steps] = (
    (RETRY, Step.RETRY),
    (STREAM_AFTER, Step.STREAM),
    (2 * RETRY, Step.RETRY),
    (GIVE_UP, Step.GIVE_UP),
)
PROBE_STEPS: Final[Steps] = ((PROBE_GIVE_UP, Step.GIVE_UP),)

_LEAST_SHARES: Final = 4  # of GIVE_UP: with few ways, the next one still starts early enough to answer


def patience(ways: int) -> float:
    """Silence before the next of several ways to ask starts too: the last way also gets its turn before GIVE_UP."""
    return GIVE_UP / max(ways + 1, _LEAST_SHARES)


# --- A connection ---

CONNECT: Final = 1.5
"""Time for TCP and TLS together; the query's own deadline may come first."""
SEND: Final = 5.0
"""Time for the upstream to take one message."""
IDLE: Final = 15.0
"""Time without a query after which a connection is closed; servers close theirs after about as long."""

# --- Health ---

PROBE_EVERY: Final = 0.5
"""Time between two probes of a failing upstream, and the time limit of each probe."""
LOOP_EVERY: Final = 30.0
"""Time between two loop probes."""
LOOPING_EVERY: Final = 5.0
"""The same while there is a loop."""
LOOP_TIMEOUT: Final = 2.0
"""Time limit of a loop probe."""
