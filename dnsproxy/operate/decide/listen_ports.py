"""Where the relay listens for each backend's port.

The law: 20000 to 29999, below the node ports and the ephemeral ports; one key keeps its port, and another key, also
one that people wrote, never has the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from dnsproxy.operate.decide.facts import RouteService

FIRST: Final = 20_000
COUNT: Final = 10_000

Key = tuple[str, int, str]
"""Backend as NAMESPACE/NAME, its port, the header: routes with one key may share a port."""


def choose_ports(needed: set[Key], *, fixed: Iterable[RouteService], ours: Iterable[RouteService]) -> dict[Key, int]:
    """The listening port of each key; a key is missing if all are taken.

    `fixed` are routes that stay as they are, `ours` those whose ports stay if nothing is in the way.
    """
    taken: dict[int, set[Key]] = {}
    for route in fixed:
        for one in route.ports:
            taken.setdefault(one.target_port, set()).add((route.relay_to, one.port, route.header))
    chosen: dict[Key, int] = {}
    for route in ours:
        for one in route.ports:
            key = (route.relay_to, one.port, route.header)
            free = taken.get(one.target_port, {key}) == {key} and _in_range(one.target_port)
            if key in needed and key not in chosen and free:
                chosen[key] = one.target_port
                taken[one.target_port] = {key}
    for key in sorted(needed - chosen.keys()):
        start = int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:4], "big")
        for step in range(COUNT):
            port = FIRST + (start + step) % COUNT
            if port not in taken:
                chosen[key] = port
                taken[port] = {key}
                break
    return chosen


def _in_range(port: int) -> bool:
    return FIRST <= port < FIRST + COUNT
