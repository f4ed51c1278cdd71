"""Who asked for which name in the last minute: a bounded memory, for `explain`.

The law: pure. Nothing older than WINDOW is ever shown, and everything together is bounded by PAIRS and LONGEST: under a
flood of random names the memory reaches back less far, and no name takes more of it than CLIENTS.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from dnsproxy.dns.edns_options import client_subnet
from dnsproxy.dns.names import format_wire
from dnsproxy.dns.wire import HEADER, question_end
from dnsproxy.tap.seen import Seen

WINDOW: Final = 60.0
"""Seconds that a query is remembered."""
SLOT: Final = 5.0
"""Seconds that are forgotten together."""
PAIRS: Final = 20_000
"""Pairs of a name and a client in all slots; together 5 to 10 MB, the most if each name differs."""
CLIENTS: Final = 100
"""Clients of one name in one slot."""
SHOWN: Final = 20
"""Clients of one name that are shown, the last to ask first."""


class Asking(NamedTuple):
    """One query, as far as it is remembered."""

    name: str
    """Small letters, without the final dot."""
    client: str
    subnet: str
    """As in EDNS Client Subnet; empty without it."""
    time: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class AskedBy:
    """One client of a name. The field names are keys of the JSON document."""

    client: str
    count: int
    """Queries in the last minute."""
    last: str
    """When it asked last, UTC, RFC 3339."""
    subnet: str = ""
    """The network in EDNS Client Subnet: the client of the resolver that asked."""


@dataclass(slots=True)
class _Slot:
    begun: float
    names: dict[str, dict[tuple[str, str], tuple[int, float]]] = field(default_factory=dict)
    """By name and client, how often and when last."""
    pairs: int = 0


def asking_of(seen: Seen) -> Asking | None:
    """What to remember of a query; None without a well-formed question."""
    end = question_end(seen.query)
    if not end:
        return None
    name = format_wire(seen.query[HEADER : end - 4]).removesuffix(".").lower()
    return Asking(name, seen.client, client_subnet(seen.query), seen.time)


class RecentClients:
    """The memory. `clock` gives seconds that only grow."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slots: deque[_Slot] = deque()
        self._pairs = 0

    def __len__(self) -> int:
        """Pairs of a name and a client that are remembered."""
        return self._pairs

    def add(self, asking: Asking) -> None:
        """Remember a query."""
        slot = self._current()
        clients = slot.names.setdefault(asking.name, {})
        key = asking.client, asking.subnet
        count, last = clients.get(key, (0, asking.time))
        if not count:
            if len(clients) >= CLIENTS:
                return
            slot.pairs += 1
            self._pairs += 1
        clients[key] = count + 1, max(last, asking.time)
        while self._pairs > PAIRS:
            self._forget()

    def asked_by(self, name: str) -> tuple[AskedBy, ...]:
        """The clients that asked for a name in the last minute, the last to ask first."""
        self._current()
        found: dict[tuple[str, str], tuple[int, float]] = {}
        for slot in self._slots:
            for key, (count, last) in slot.names.get(name.lower(), {}).items():
                before = found.get(key, (0, last))
                found[key] = before[0] + count, max(before[1], last)
        newest = sorted(found.items(), key=lambda item: (-item[1][1], item[0]))[:SHOWN]
        return tuple(AskedBy(client, count, _format_time(last), subnet) for (client, subnet), (count, last) in newest)

    def _current(self) -> _Slot:
        """The slot of now; those that are too old are gone."""
        now = self._clock()
        while self._slots and now - self._slots[0].begun > WINDOW:
            self._forget()
        if not self._slots or now - self._slots[-1].begun >= SLOT:
            self._slots.append(_Slot(now))
        return self._slots[-1]

    def _forget(self) -> None:
        self._pairs -= self._slots.popleft().pairs


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
