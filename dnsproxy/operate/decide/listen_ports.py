"""Where the relay listens for each port of the route Services that we write.

The law: 20000 to 29999, below the node ports and the ephemeral ports; a port of a Service keeps its listening port,
unless an older Service wants it, which has it at the relay (sidecar/kubernetes/relay_routes.py). A new one is free.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from dnsproxy.operate.decide.facts import Route

FIRST: Final = 20_000
COUNT: Final = 10_000

Key = tuple[str, int]
"""The name of a route Service, and one of its ports."""


def choose_ports(needed: Iterable[Key], routes: Iterable[Route]) -> dict[Key, int]:
    """The listening port of each needed key; a key is missing if all are taken. `routes`: those that exist."""
    wanted = set(needed)
    kept: dict[Key, int] = {}
    taken: set[int] = set()
    for route in sorted(routes, key=lambda one: (one.created, one.name)):
        for one in route.ports if route.relay_to else ():
            key = route.name, one.port
            if route.ours and key in wanted and one.listen not in taken and FIRST <= one.listen < FIRST + COUNT:
                kept[key] = one.listen
            taken.add(one.listen)
    for key in sorted(wanted - kept.keys()):
        port = next((port for port in _candidates(key) if port not in taken), None)
        if port is not None:
            kept[key] = port
            taken.add(port)
    return kept


def _candidates(key: Key) -> Iterable[int]:
    """All ports, from one on that is the key's own: the same Service written twice listens at the same ports."""
    start = int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:4], "big")
    return (FIRST + (start + step) % COUNT for step in range(COUNT))
