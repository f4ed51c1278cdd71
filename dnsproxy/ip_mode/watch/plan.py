"""The plan of a watcher for one Service: when it writes, and when it waits, after each event.

The law: a state of the Service that needs no patch leads to no write; a resource version is written at most once, which
the API server tests too. So there are never more writes than states that others wrote. Against a writer that undoes
them, writes become rarer (write_backoff.py), up to one in 5 minutes. Clock reading and random number are parameters.
Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from typing import Final

from dnsproxy.ip_mode.watch.observed import Observed
from sidecar.values.write_backoff import Backoff, lost, stood, wait_of

LONGEST: Final = 300.0
"""Seconds between two attempts while the API server refuses or fails them."""
UNTIL_UPGRADE: Final = 3600.0
"""Seconds without a write after the API server did not keep one: only another version of it would."""
_FIRST: Final = 1.0
_OVERTAKEN_FIRST: Final = 0.1
_OVERTAKEN_MOST: Final = 4
"""Refused attempts at one resource version, without the watch showing another, that pass for conflicts."""
_SPREAD: Final = 0.2


class Standing(Enum):
    """The state of a Service, as the watcher sees it."""

    STARTING = "starting"
    WAITING = "waiting"
    """It does not exist, is no load balancer, or has no address: there is nothing to write."""
    IN_PLACE = "in-place"
    WRITING = "writing"
    UNDONE = "undone"
    """Another writer keeps undoing it; the next write waits."""
    REFUSED = "refused"
    """Its load balancer does not end connections, or is not known to."""
    NOT_KEPT = "not-kept"
    """The API server takes the write, and drops the field or sets it back."""
    FAILED = "failed"
    """The API server does not allow the write, or is away; it is tried again."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The watch shows the Service; None: it does not exist."""

    observed: Observed | None


@dataclass(frozen=True, slots=True)
class Tick:
    """The time of the next write may have come."""


@dataclass(frozen=True, slots=True)
class Written:
    """The API server took the patch; this is its answer."""

    answer: Observed


@dataclass(frozen=True, slots=True)
class Overtaken:
    """The API server refused the patch, as it does if the Service was changed since it was seen."""

    why: str


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The patch was not made, or it is unknown whether it was."""

    why: str
    retry_after: float = 0.0


Event = Seen | Tick | Written | Overtaken | WriteFailed


@dataclass(frozen=True, slots=True)
class WatchState:
    """The state of one Service's watcher; times are seconds of one clock."""

    standing: Standing = Standing.STARTING
    why: str = ""
    seen: Observed | None = None
    """The Service as the watch, or the answer to a write, showed it last."""
    writing: bool = False
    hold_until: float = -inf
    """No write before this time."""
    spent: str = ""
    """The resource version whose write was not kept; it is not written again."""
    tried: str = ""
    """The resource version of the last attempts that were refused, and their number."""
    attempts: int = 0
    failures: int = 0
    """Failures in a row."""
    placed: tuple[str, tuple[str, ...]] = ("", ())
    """The uid and the addresses of the Service that was last in place."""
    backoff: Backoff = field(default_factory=Backoff)
    writes: int = 0
    undone: int = 0
    """How often another writer wrote another ipMode for the same addresses."""

    @property
    def wake_at(self) -> float:
        """The time of the next Tick that may lead to a write."""
        return self.hold_until if not self.writing and _drifts(self) else inf


def watch_step(state: WatchState, event: Event, now: float, draw: float) -> tuple[WatchState, bool]:
    """The state after an event, and whether to send `state.seen.patch` now. `draw` is a random number from [0, 1).

    While a write runs, only its end is an event; the caller keeps what the watch shows meanwhile.
    """
    match event:
        case Seen(observed):
            state = replace(state, seen=observed)
        case Tick():
            pass
        case Written(answer):
            state = _written(state, answer, now)
        case Overtaken(why):
            state = _overtaken(replace(state, writing=False), why, now, draw)
        case WriteFailed(why, retry_after):
            state = _failed(replace(state, writing=False), why, now, draw, retry_after)
    return _decide(state, now, draw)


def _drifts(state: WatchState) -> bool:
    seen = state.seen
    return seen is not None and not seen.why_refused and bool(seen.patch) and seen.resource_version != state.spent


def _written(state: WatchState, answer: Observed, now: float) -> WatchState:
    state = replace(state, writing=False, seen=answer, writes=state.writes + 1, attempts=0, failures=0)
    if not answer.patch:
        return state
    why = "the API server drops ipMode (older than Kubernetes 1.30), or a webhook or policy of the cluster sets it back"
    hold = now + UNTIL_UPGRADE
    return replace(state, standing=Standing.NOT_KEPT, why=why, hold_until=hold, spent=answer.resource_version)


def _overtaken(state: WatchState, why: str, now: float, draw: float) -> WatchState:
    version = state.seen.resource_version if state.seen else ""
    attempts = state.attempts + 1 if version == state.tried else 1
    if attempts > _OVERTAKEN_MOST:
        # The watch shows no other version, so this is no conflict.
        return _failed(state, why, now, draw, 0.0)
    hold = now + _delay(attempts, _OVERTAKEN_FIRST, draw)
    return replace(state, tried=version, attempts=attempts, hold_until=max(state.hold_until, hold))


def _failed(state: WatchState, why: str, now: float, draw: float, retry_after: float) -> WatchState:
    failures = state.failures + 1
    wait = max(_delay(failures, _FIRST, draw), min(retry_after, LONGEST))
    return replace(state, standing=Standing.FAILED, why=why, failures=failures, hold_until=now + wait)


def _decide(state: WatchState, now: float, draw: float) -> tuple[WatchState, bool]:
    seen = state.seen
    if state.writing:
        return state, False
    if seen is None or seen.why_waiting:
        return replace(state, standing=Standing.WAITING, why=seen.why_waiting if seen else "it does not exist"), False
    if seen.why_refused:
        return replace(state, standing=Standing.REFUSED, why=seen.why_refused), False
    if not seen.patch:
        return _in_place(state, seen, now), False
    if not _drifts(state):
        return state, False
    state = _lose(state, seen, now, draw)
    if now >= state.hold_until:
        return replace(state, standing=Standing.WRITING, why="", writing=True), True
    return _held(state, seen), False


def _in_place(state: WatchState, seen: Observed, now: float) -> WatchState:
    return replace(
        state, standing=Standing.IN_PLACE, why="", hold_until=-inf, spent="", attempts=0, failures=0,
        placed=(seen.uid, seen.addresses), backoff=stood(state.backoff, now),
    )  # fmt: skip


def _lose(state: WatchState, seen: Observed, now: float, draw: float) -> WatchState:
    """The Service was in place, and is not any more. Whatever the cause, repeated writes become rarer."""
    if state.backoff.stands_since is None:
        return state
    backoff = lost(state.backoff, now)
    hold = now + wait_of(backoff) * (1 + _SPREAD * draw)
    undone = state.undone + (state.placed == (seen.uid, seen.addresses))
    return replace(state, backoff=backoff, undone=undone, hold_until=max(state.hold_until, hold))


def _held(state: WatchState, seen: Observed) -> WatchState:
    if state.standing in (Standing.FAILED, Standing.NOT_KEPT):
        # The reason of the wait stays visible.
        return state
    if not wait_of(state.backoff):
        return replace(state, standing=Standing.WRITING, why="")
    who = seen.writer or "an unknown writer"
    why = f"undone by {who}, {state.undone} times so far; writes are at least {wait_of(state.backoff):g} s apart"
    return replace(state, standing=Standing.UNDONE, why=why)


def _delay(failures: int, first: float, draw: float) -> float:
    """Seconds after so many failures in a row (from 1), drawn from the upper half."""
    return min(LONGEST, first * 2.0 ** min(failures - 1, 16)) * (1 + draw) / 2
