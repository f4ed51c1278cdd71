"""The state machine of a watcher: what it does next after each event.

The law: one action at a time, and never two writes without a read (a look) in between; a look that finds the stanza in
place leads to no write. The next look always has a time, so that no wait is endless. Clock reading and random number
are parameters. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from typing import Final

from sidecar.values.write_backoff import QUIET, Backoff, lost, stood, wait_of

JITTER: Final = 0.3
"""Maximum seconds between a change and the look at it; of two watchers, the second then finds it repaired."""
GAP: Final = 0.5
"""Minimum seconds between two looks after changes; a look is about 10 requests."""
HELD_GAP: Final = 10.0
"""The same while writes are held back."""
HELD_HEARTBEAT: Final = 30.0
"""Seconds between looks while writes are held back: another watcher may have put the stanza in place."""
HEARTBEAT: Final = 120.0
"""Seconds between looks without changes, for objects that are not followed, such as all Ingresses."""
FOLLOW_GAP: Final = 5.0
"""Minimum seconds between two writes that only follow dnsproxy's table: CoreDNS reloads after each."""
_SPREAD: Final = 0.2


class Standing(Enum):
    """The state of the stanza."""

    STARTING = "starting"
    INSTALLED = "installed"
    REPAIRING = "repairing"
    """A look found it missing or changed, and it is being written."""
    UNDONE = "undone"
    """Another writer keeps undoing it; the next write waits."""
    REFUSED = "refused"
    """It must not be written in this state of the cluster; later looks check again."""
    UNKNOWN = "unknown"
    """The API server is away, or does not allow a request; nothing changes."""


class Action(Enum):
    """What the watcher has to do; the next event reports its result."""

    LOOK = "look"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class ObjectChanged:
    """An object that the plan depends on has changed."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The time of the next look may have come."""


@dataclass(frozen=True, slots=True)
class InPlace:
    """A look found nothing to write."""

    wanted: str
    """The wanted state in any form; it tells undone changes from changed wishes."""
    uid: str = ""
    """That of the object to write; empty if it does not exist."""


@dataclass(frozen=True, slots=True)
class Drifted:
    """A look found something to write."""

    wanted: str
    uid: str = ""
    """As above."""
    follows: bool = False
    """Whether the stanza stands as it was written, and only lacks zones or names: no other writer has undone it."""


@dataclass(frozen=True, slots=True)
class PlanRefused:
    """A look found that the change is refused."""

    why: str


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """A look failed."""

    why: str


@dataclass(frozen=True, slots=True)
class Written:
    """The write succeeded."""


@dataclass(frozen=True, slots=True)
class Conflicted:
    """The write was not made, because another writer was faster."""


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The write was not made, or it is unknown whether it was."""

    why: str
    refused: bool
    """Whether the API server rejects the change itself."""


Event = ObjectChanged | Tick | InPlace | Drifted | PlanRefused | ReadFailed | Written | Conflicted | WriteFailed


class Cause(Enum):
    """The reason for a write."""

    FIRST = "first"
    UNDONE = "undone"
    MOVED = "moved"
    """The wish has changed: dnsproxy has another address, or the zones are others."""


@dataclass(frozen=True, slots=True)
class WatchState:
    """The state of a watcher; times are seconds of one clock."""

    standing: Standing = Standing.STARTING
    why: str = ""
    """The reason for `refused` and `unknown`."""
    running: Action | None = None
    look_at: float = -inf
    """The time of the next look, if no action is running."""
    hold_until: float = -inf
    """No write before this time."""
    looked_at: float = -inf
    changed: bool = False
    """Whether an object changed while an action was running."""
    wanted: str | None = None
    """The wanted state when the stanza was last in place; None before the first time."""
    uid: str = ""
    """Of the object to write, when it was last seen."""
    renewed_at: float = -inf
    """When another object of its name last ended the backoff."""
    pending: str = ""
    """The wanted state that is being written."""
    cause: Cause = Cause.FIRST
    backoff: Backoff = field(default_factory=Backoff)
    failures: int = 0
    """Failures in a row."""
    followed_at: float = -inf
    """When a write last followed dnsproxy's table."""
    repairs: int = 0
    """Writes after the first, so far."""
    undone: int = 0
    """How often another writer undid it, so far."""

    @property
    def held(self) -> float:
        """The seconds between writes at present."""
        return wait_of(self.backoff)


def watch_step(state: WatchState, event: Event, now: float, draw: float) -> tuple[WatchState, Action | None]:
    """The state after an event, and the action to start. `draw` is a random number from [0, 1)."""
    match event:
        case ObjectChanged():
            return _touch(state, now, draw), None
        case Tick():
            due = state.running is None and now >= state.look_at
            return (_begin(state, Action.LOOK), Action.LOOK) if due else (state, None)
        case Drifted(wanted, uid, follows):
            return _drift(_renew(state, uid, now), wanted, now, draw, follows=follows)
        case _:
            return _settle(_end(state, event, now, draw), now, draw), None


def _touch(state: WatchState, now: float, draw: float) -> WatchState:
    if state.running is not None:
        return replace(state, changed=True)
    return replace(state, look_at=min(state.look_at, _soon(state, now, draw)))


def _soon(state: WatchState, now: float, draw: float) -> float:
    gap = HELD_GAP if now < state.hold_until else GAP
    return max(now + JITTER * draw, state.looked_at + gap)


def _begin(state: WatchState, action: Action) -> WatchState:
    return replace(state, running=action, changed=False if action is Action.LOOK else state.changed)


def _renew(state: WatchState, uid: str, now: float) -> WatchState:
    """The state for another object of the same name, whose writer has undone nothing yet: its repair does not wait.

    At most once in QUIET seconds, so that a writer that creates the object again and again is not fought either.
    """
    if not uid or uid == state.uid:
        return state
    if not state.uid or now - state.renewed_at < QUIET:
        return replace(state, uid=uid)
    undone = state.undone + (state.backoff.stands_since is not None)
    return replace(state, uid=uid, renewed_at=now, backoff=Backoff(), hold_until=-inf, undone=undone)


def _drift(
    state: WatchState, wanted: str, now: float, draw: float, *, follows: bool
) -> tuple[WatchState, Action | None]:
    if follows:
        if now < state.followed_at + FOLLOW_GAP:
            later = state.followed_at + FOLLOW_GAP
            return _settle(replace(state, running=None, looked_at=now, look_at=later), now, draw), None
        state = replace(state, followed_at=now)
    backoff, hold, undone = state.backoff, state.hold_until, state.undone
    if state.backoff.stands_since is not None and not follows:
        # Whatever the cause, repeated writes become rarer.
        backoff = lost(state.backoff, now)
        hold = max(hold, now + wait_of(backoff) * (1 + _SPREAD * draw)) if wait_of(backoff) else hold
        undone += wanted == state.wanted
    cause = Cause.FIRST if state.wanted is None else Cause.UNDONE if wanted == state.wanted else Cause.MOVED
    state = replace(
        state, running=None, looked_at=now, backoff=backoff, hold_until=hold, undone=undone, pending=wanted, cause=cause
    )
    if now >= hold:
        return _begin(replace(state, standing=Standing.REPAIRING, why=""), Action.WRITE), Action.WRITE
    # The reason why the last write failed stays visible.
    kept = state.standing in (Standing.REFUSED, Standing.UNKNOWN) and not wait_of(backoff)
    state = state if kept else replace(state, standing=Standing.UNDONE, why="")
    return _settle(replace(state, look_at=min(hold, now + HELD_HEARTBEAT)), now, draw), None


def _end(state: WatchState, event: Event, now: float, draw: float) -> WatchState:
    """The state after an action that ended with this event."""
    state = replace(state, running=None)
    failures = state.failures + 1
    match event:
        case InPlace(wanted, uid):
            later = now + HEARTBEAT * (1 - _SPREAD * draw)
            backoff = stood(state.backoff, now)
            return replace(
                state, standing=Standing.INSTALLED, why="", wanted=wanted, backoff=backoff, look_at=later,
                looked_at=now, hold_until=-inf, failures=0, uid=uid or state.uid,
            )  # fmt: skip
        case PlanRefused(why):
            later = now + _retry_delay(failures, 2.0, 60.0, draw)
            return replace(state, standing=Standing.REFUSED, why=why, look_at=later, looked_at=now, failures=failures)
        case ReadFailed(why):
            later = now + _retry_delay(failures, 1.0, 30.0, draw)
            return replace(state, standing=Standing.UNKNOWN, why=why, look_at=later, looked_at=now, failures=failures)
        case Written():
            repairs = state.repairs + (state.cause is not Cause.FIRST)
            backoff = stood(state.backoff, now)
            return replace(state, wanted=state.pending, backoff=backoff, repairs=repairs, look_at=now)
        case Conflicted():
            return replace(state, look_at=now + _retry_delay(failures, 0.1, 3.0, draw), failures=failures)
        case WriteFailed(why, refused):
            later = now + _retry_delay(failures, 5.0, 300.0, draw)
            standing = Standing.REFUSED if refused else Standing.UNKNOWN
            return replace(state, standing=standing, why=why, look_at=later, hold_until=later, failures=failures)
    raise TypeError(event)


def _settle(state: WatchState, now: float, draw: float) -> WatchState:
    """Plan a look at objects that changed during the action."""
    if not state.changed:
        return state
    return replace(state, changed=False, look_at=min(state.look_at, _soon(state, now, draw)))


def _retry_delay(failures: int, first: float, longest: float, draw: float) -> float:
    """Seconds after so many failures in a row (from 1), drawn from the upper half."""
    return min(longest, first * 2.0 ** min(failures - 1, 16)) * (1 + draw) / 2
