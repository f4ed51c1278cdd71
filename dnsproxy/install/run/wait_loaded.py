"""Proving: asks the cluster's DNS again and again until dnsproxy answers through it, or no longer does.

The law: it ends as soon as every server that is asked says what is hoped for, or when its time is over; who can never
be reached from here is not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio

from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult
from dnsproxy.cluster_dns.probing import Patience, ask_all
from sidecar.values.endpoints import Endpoint

PAUSE_SECONDS: Final = 1.0
LOADED: Final = frozenset([Presence.YES])
GONE: Final = frozenset([Presence.NO])

Progress = Callable[[float, Sequence[ProbeResult]], None]
"""Told the seconds since the beginning and what was said last."""


async def is_reachable(endpoints: Sequence[Endpoint], zones: Sequence[str]) -> bool:
    """Whether anything at all answers there."""
    asked = await ask_all(endpoints, zones[:1], Patience(times=2))
    return any(one.state is not Presence.SILENT for one in asked)


async def prove(
    endpoints: Sequence[Endpoint],
    zones: Sequence[str],
    hoped: frozenset[Presence],
    *,
    seconds: float,
    progress: Progress,
) -> tuple[ProbeResult, ...]:
    """What the servers said last: at the latest what they say when the time is over."""
    start = trio.current_time()
    while True:
        asked = await ask_all(endpoints, zones)
        passed = trio.current_time() - start
        # A family that does not lead anywhere from here is no reason to wait.
        states = {one.state for one in asked} - {Presence.SILENT}
        if (states and states <= hoped) or passed >= seconds:
            return asked
        progress(passed, asked)
        await trio.sleep(min(PAUSE_SECONDS, max(0.0, seconds - passed)))
