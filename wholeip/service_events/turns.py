"""Turns: which agent sends an Event first, and how long each of the others waits.

The law: the Nodes of the cluster take turns, from the one at which a hash of the Event's name points. Turn 0 sends a
report that has lasted 15 to 45 seconds, and sends it again every 10 to 15 minutes while it lasts, because the API
server deletes Events after an hour. Turn r does both (r+1)² times more slowly, in case that the Nodes before it have no
agent. However many agents a cluster has, together they send at most 21 requests for a report in any hour, and all but
the first find that the Event exists. 1,000 agents with 1,000 reports send 6 requests a second, and 33 a second in the
half minute of the first turn, if all reports began at once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from zlib import crc32

FIRST: Final = 15.0
"""Seconds, at least, until turn 0: a load balancer that is about to assign an address needs no Event."""
_FIRST_SPREAD: Final = 2.0
"""So many times longer at most: one change may exclude a thousand Services, seen by all agents at once."""
REPEAT: Final = 600.0
"""Seconds, at least, until turn 0 sends an Event again."""
_REPEAT_SPREAD: Final = 0.5
_ASSUMED: Final = 1000
"""Nodes of a cluster that does not show them: many agents must not all have the first turn."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The place of one agent among the Nodes of its cluster."""

    place: int
    """From 0."""
    count: int

    def turn(self, name: str) -> int:
        """The turn of this agent for the Event with this name."""
        return (self.place - crc32(name.encode())) % self.count


def turns_of(node: str, nodes: Collection[str]) -> Turns:
    """The place of the agent on `node`; one of many, if the cluster does not show that Node."""
    if node not in nodes:
        return Turns(crc32(node.encode()) % _ASSUMED, _ASSUMED)
    # In an order of their hashes: agents that run on some Nodes only often have neighbouring names.
    own = _order(node)
    return Turns(sum(_order(one) < own for one in nodes), len(nodes))


def _order(node: str) -> tuple[int, str]:
    return crc32(node.encode()), node


def first_wait(turn: int, draw: float) -> float:
    """Seconds for which a report must last before it is sent. `draw` is a random number from [0, 1)."""
    return float((turn + 1) ** 2) * FIRST * (1 + _FIRST_SPREAD * draw)


def repeat_wait(turn: int, draw: float) -> float:
    """Seconds until it is sent again."""
    return float((turn + 1) ** 2) * REPEAT * (1 + _REPEAT_SPREAD * draw)
