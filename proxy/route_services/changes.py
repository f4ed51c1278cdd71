"""The changes that turn the open ports into the wanted ones, and when a port that could not be opened is tried again.

The law: pure; times are seconds of one clock that the caller reads. A port that stays open is never closed for a
change, and what one port does depends on no other, except that there is room for so many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final

from proxy.routes import Route

FIRST_RETRY: Final = 1.0
"""Seconds until a port is tried again for the first time; doubles up to LAST_RETRY."""
LAST_RETRY: Final = 30.0


class Action(Enum):
    """What happens to a port."""

    CLOSE = "close"
    CHANGE = "change"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class RouteChange:
    """One port; the route is the one that is closed, or that holds from now on."""

    action: Action
    route: Route


@dataclass(frozen=True, slots=True)
class Failed:
    """A port that could not be opened."""

    reason: str
    attempts: int
    retry_at: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done now, in this order: what closes makes room first."""

    changes: tuple[RouteChange, ...]
    excess: tuple[Route, ...]
    """Wanted routes for which there is no room."""
    due: float
    """When a port is to be tried again."""


def plan_changes(
    opened: Mapping[int, Route], wanted: Iterable[Route], failed: Mapping[int, Failed], *, most: int, now: float
) -> Plan:
    """Plan from the open routes to the wanted ones, both by port; at most `most` are open."""
    by_port = {route.listen.port: route for route in wanted}
    closes = [RouteChange(Action.CLOSE, route) for port, route in opened.items() if port not in by_port]
    stays = [port for port in by_port if port in opened]
    changes = [RouteChange(Action.CHANGE, by_port[port]) for port in stays if by_port[port] != opened[port]]
    new = [port for port in by_port if port not in opened]
    room = max(0, most - len(stays))
    fitting = new[:room]
    opens = [RouteChange(Action.OPEN, by_port[port]) for port in fitting if _is_due(failed.get(port), now)]
    due = min((failed[port].retry_at for port in fitting if not _is_due(failed.get(port), now)), default=inf)
    return Plan((*closes, *changes, *opens), tuple(by_port[port] for port in new[room:]), due)


def after_failure(before: Failed | None, *, reason: str, now: float) -> Failed:
    """A port could not be opened, once more."""
    attempts = 1 if before is None else before.attempts + 1
    # The bounded exponent keeps the power within a float.
    return Failed(reason, attempts, now + min(LAST_RETRY, FIRST_RETRY * 2.0 ** min(attempts - 1, 16)))


def _is_due(failed: Failed | None, now: float) -> bool:
    return failed is None or failed.retry_at <= now
