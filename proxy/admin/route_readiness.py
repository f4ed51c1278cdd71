"""Whether a relay is ready, from the state of its routes.

The law: pure. Only the routes that `--ready-when` names decide; the reason also names the other failures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proxy.backends.health import Failure, describe
from proxy.routes import Quorum, ReadyWhen
from sidecar.admin.answers import Readiness
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class RouteState:
    """A route, and whether its backend can be reached."""

    listen: Endpoint
    backend: str
    failure: Failure | None = None


def judge_routes(states: Sequence[RouteState], ready_when: ReadyWhen) -> Readiness:
    """Whether the routes that decide reach their backends; otherwise, or for another route, the failures."""
    deciding = [one for one in states if _decides(one.listen, ready_when)]
    working = [one.failure is None for one in deciding]
    ready = any(working) if ready_when == (Quorum.ANY,) else all(working)
    failures = _failures([*deciding, *states])
    if not ready or not failures:
        return Readiness(ready=ready, reason=failures or "ready")
    reached = sum(one.failure is None for one in states)
    return Readiness(ready=True, reason=f"ready, {reached} of {len(states)} routes; {failures}")


def _decides(listen: Endpoint, ready_when: ReadyWhen) -> bool:
    return any(isinstance(one, Quorum) or one.covers(listen) for one in ready_when)


def _failures(states: Iterable[RouteState]) -> str:
    """Each backend once, although several routes may have it; the routes that decide come first."""
    return describe({one.backend: one.failure for one in states if one.failure is not None}.items())
