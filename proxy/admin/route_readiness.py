"""Whether a relay is ready, from the state of its routes.

The law: pure. Only the routes that `--ready-when` names decide; the reason also names the other failures. A named port
on which nothing listens, perhaps because its Service has not come yet, is not ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proxy.backends.health import Failure, describe
from proxy.routes import Listening, Quorum, ReadyWhen
from sidecar.admin.answers import Readiness
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class RouteState:
    """A route, and whether its backend can be reached."""

    listen: Endpoint
    backend: str
    failure: Failure | None = None
    problem: str = ""
    """Why its port is not open; empty if it is."""

    @property
    def works(self) -> bool:
        """Whether clients reach the backend."""
        return self.failure is None and not self.problem


def judge_routes(states: Sequence[RouteState], ready_when: ReadyWhen) -> Readiness:
    """Whether the routes that decide reach their backends; otherwise, or for another route, the failures."""
    if missing := [one for one in ready_when if isinstance(one, Listening) and not _is_open(one, states)]:
        return Readiness(
            ready=False, reason=_join([*(f"no route listens on {one}" for one in missing), _failures(states)])
        )
    deciding = [one for one in states if _decides(one.listen, ready_when)]
    working = [one.works for one in deciding]
    # Without any route, there is nothing to wait for: Services may bring some at any time, or never.
    ready = any(working) or not states if ready_when == (Quorum.ANY,) else all(working)
    failures = _failures([*deciding, *states])
    if not ready or not failures:
        return Readiness(ready=ready, reason=failures or ("ready" if states else "ready, no routes"))
    reached = sum(one.works for one in states)
    return Readiness(ready=True, reason=f"ready, {reached} of {len(states)} routes; {failures}")


def _is_open(wanted: Listening, states: Iterable[RouteState]) -> bool:
    return any(wanted.covers(one.listen) and not one.problem for one in states)


def _decides(listen: Endpoint, ready_when: ReadyWhen) -> bool:
    return any(isinstance(one, Quorum) or one.covers(listen) for one in ready_when)


def _failures(states: Sequence[RouteState]) -> str:
    """Each backend once, although several routes may have it; the routes that decide come first."""
    problems = dict.fromkeys(f"{one.listen} is not open: {one.problem}" for one in states if one.problem)
    failures = {one.backend: one.failure for one in states if one.failure is not None}
    return _join([describe(failures.items()), *problems])


def _join(parts: Iterable[str]) -> str:
    return "; ".join(part for part in parts if part)
