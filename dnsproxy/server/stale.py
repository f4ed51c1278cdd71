"""When a queued query is too old to be forwarded: after this process hung, was stopped, or got no processor.

The law: a query is stale when its client asks elsewhere already. A queue of stale queries, forwarded at once, fills the
sockets of the upstream that the clients ask now. A clock that was set makes no query stale. Pure.
"""

from __future__ import annotations

from typing import Final

STALE: Final = 2.0
"""Seconds. CoreDNS waits so long for one server, then asks the next (plugin/forward, `readTimeout`)."""
_SLACK: Final = 0.5
"""Seconds that may pass between the readings of the two clocks."""


def is_stale(age: float, *, gap: float) -> bool:
    """Whether a query that waited `age` seconds by the time of day is stale.

    `gap`: seconds by a clock that nobody sets since the queue was last empty. No query waited longer.
    """
    return STALE < age <= gap + _SLACK
