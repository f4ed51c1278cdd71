"""Waits until the cluster's DNS has loaded the stanza, or has dropped it.

The law: the wait ends as soon as every server that answers is in the expected state, or when its time is over. A server
that cannot be reached from here is not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio

from dnsproxy.cluster_dns.exchange import Patience
from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult
from dnsproxy.cluster_dns.probing import ask_all
from sidecar.values.endpoints import Endpoint

PAUSE_SECONDS: Final = 1.0
LOADED: Final = frozenset([Presence.YES])
GONE: Final = frozenset([Presence.NO])

Progress = Callable[[float, Sequence[ProbeResult]], None]
"""Called with the seconds since the start and the last answers."""


async def is_reachable(endpoints: Sequence[Endpoint], zones: Sequence[str]) -> bool:
    """Whether any of the servers answers at all."""
    asked = await ask_all(endpoints, zones[:1], Patience(times=2))
    return any(one.state is not Presence.SILENT for one in asked)


async def wait_loaded(
    endpoints: Sequence[Endpoint],
    zones: Sequence[str],
    expected: frozenset[Presence],
    *,
    seconds: float,
    progress: Progress,
) -> tuple[ProbeResult, ...]:
    """The last answers: those in the expected state, or those at the end of the time."""
    start = trio.current_time()
    while True:
        asked = await ask_all(endpoints, zones)
        passed = trio.current_time() - start
        # An address family without a route from here is no reason to wait.
        states = {one.state for one in asked} - {Presence.SILENT}
        if (states and states <= expected) or passed >= seconds:
            return asked
        progress(passed, asked)
        await trio.sleep(min(PAUSE_SECONDS, max(0.0, seconds - passed)))
