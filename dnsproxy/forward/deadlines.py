"""The deadlines of an upstream: what happens to a query whose upstream is silent, and when.

The law: every time limit towards an upstream stands here, in seconds, and nothing else does. CoreDNS waits two seconds
for a reply and one second for its health probe; after that it treats this server as dead.
"""

from __future__ import annotations

import functools
from enum import Enum
from typing import Final

# --- A query ---

TICK: Final = 0.05
"""Time between two checks of all flights."""
RETRY: Final = 0.6
"""Silence before the next upstream is asked, and again before the one after it, if there are few."""
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
FEW: Final = 3
"""Upstreams that STEPS asks."""
HURRIED_RETRY: Final = 0.4
"""The shortest silence of the first of many upstreams; a shorter one would ask several for each slow name."""


@functools.cache
def steps_for(upstreams: int) -> Steps:
    """The steps that ask each of so many upstreams: with more than FEW, the gaps after the first one shrink."""
    if upstreams <= FEW:
        return STEPS
    last = 2 * RETRY
    gap = (last - HURRIED_RETRY) / (upstreams - 2)
    retries = [(HURRIED_RETRY + place * gap, Step.RETRY) for place in range(upstreams - 1)]
    return tuple(sorted([*retries, (STREAM_AFTER, Step.STREAM), (GIVE_UP, Step.GIVE_UP)], key=lambda step: step[0]))


PROBE_STEPS: Final[Steps] = ((PROBE_GIVE_UP, Step.GIVE_UP),)

_LEAST_SHARES: Final = 4  # of GIVE_UP: with few ways, the next one still starts early enough to answer


def patience(ways: int) -> float:
    """Silence before the next of several ways to ask starts too: the last way also gets its turn before GIVE_UP."""
    return GIVE_UP / max(ways + 1, _LEAST_SHARES)


def stream_patience(ways: int) -> float:
    """The same for streams after STREAM_AFTER; many share the time that is left."""
    return patience(ways) if ways < FEW else (GIVE_UP - STREAM_AFTER) / (ways + 1)


# --- A source port ---

PORT_AGE: Final = 60.0
"""Time after which a source port is closed: forging a reply needs its number, which takes an attacker time to find."""
PORT_CHECK: Final = 10.0
"""Time between two looks for old ports."""

# --- A connection ---

CONNECT: Final = 1.5
"""Time for TCP and TLS together; the query's own deadline may come first."""
SEND: Final = 5.0
"""Time for the upstream to take one message."""
IDLE: Final = 15.0
"""Time without a query after which a connection is closed; servers close theirs after about as long."""

CLOSE: Final = 1.0
"""Time for the closing message of TLS."""
SUSPECT: Final = 0.5
"""Time without a reply, on a connection that has answered before, until its queries are asked on a fresh one too."""
SILENT: Final = GIVE_UP
"""Time without a reply until a connection is closed."""
LEARNED: Final = 300.0
"""Time for which a server that closes after one reply gets a connection for each query."""
REPORT_EVERY: Final = 60.0
"""Time in which the same fault of an upstream is logged once, however often it comes and goes."""

# --- Health ---

PROBE_EVERY: Final = 0.5
"""Time between two probes of a failing upstream, and the time limit of each probe."""
STREAM_PROBE_EVERY: Final = 5.0
"""The same over TCP for an upstream that is asked over UDP first: rarely, because few queries need TCP."""
LOOP_EVERY: Final = 30.0
"""Time between two loop probes."""
LOOPING_EVERY: Final = 5.0
"""The same while there is a loop."""
LOOP_TIMEOUT: Final = 2.0
"""Time limit of a loop probe."""
