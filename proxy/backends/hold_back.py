"""Hold-back: an endpoint that is new gets no connections for some seconds, while another one can take them.

The law: pure; times are seconds of a monotonic clock that the caller reads. In these seconds the owner of a route looks
at the new pod, and says whether it takes another PROXY header than the others. The endpoint that has been usable for
longest is never held back, so that a route never loses its last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from sidecar.kubernetes.endpoint_choice import Usable, in_order, preferred
from sidecar.values.endpoints import Endpoint

HOLD: Final = 3.0
"""Seconds from the moment at which an endpoint was first seen usable."""

Seen = Mapping[Endpoint, float]
"""When each usable endpoint was first seen; one that is not usable is forgotten."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which endpoints get new connections."""

    used: tuple[Endpoint, ...]
    held: tuple[Endpoint, ...] = ()
    """Those that get a connection only if every used one fails."""
    until: float = inf
    """When the next hold ends."""


def note_seen(seen: Seen, usable: Usable, *, now: float) -> Seen:
    """Add the endpoints that have become usable, and forget those that no longer are."""
    return {one: seen.get(one, now) for one in usable.ready | usable.leaving}


def choose(usable: Usable, seen: Seen, *, now: float) -> Choice:
    """The endpoints that get new connections, held ones aside; `seen` is that of note_seen.

    A terminating endpoint that still serves counts as another one that can take connections: with a single replica, it
    is the only one when its successor becomes ready.
    """
    first = min(seen.values(), default=now)
    held = frozenset(one for one in usable.ready if seen[one] > first and now < seen[one] + HOLD)
    used = preferred(ready=usable.ready - held, leaving=usable.leaving)
    return Choice(in_order(used), in_order(held), min((seen[one] + HOLD for one in held), default=inf))


def choose_all(usable: Usable) -> Choice:
    """The same without hold-back."""
    return Choice(in_order(preferred(ready=usable.ready, leaving=usable.leaving)))
