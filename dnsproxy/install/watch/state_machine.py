"""Step: what a watcher does next, after what it saw, wrote, or was told.

The law: one thing at a time, and never two writes without a look in between; a look that finds all as it should be
leads to no write. Every look has its time, so nothing is waited for without an end. The clock's reading and the random
number are handed in. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from typing import Final

from dnsproxy.install.watch.backoff import Backoff, lost, stood, wait_of

JITTER: Final = 0.3
"""Seconds, at most, between a change and the look at it: of two watchers, one then finds it mended."""
GAP: Final = 0.5
"""Seconds between two looks that changes lead to: a look is about ten requests."""
HELD_GAP: Final = 10.0
"""The same while nothing may be written."""
HEARTBEAT: Final = 120.0
"""Seconds between looks in a quiet cluster: what is not followed, such as the hosts of all Ingresses."""
_SPREAD: Final = 0.2


class Standing(Enum):
    """How it stands with the stanza."""

    STARTING = "starting"
    INSTALLED = "installed"
    REPAIRING = "repairing"
    """Its absence was seen, and it is being written."""
    UNDONE = "undone"
    """Somebody keeps undoing it, and a wait runs until it is written again."""
    REFUSED = "refused"
    """It must not be written as things are; a look now and then sees whether they changed."""
    UNKNOWN = "unknown"
    """The API server cannot be asked, or does not let us; nothing changes."""


class Action(Enum):
    """What is to be done; its result is told as the next event."""

    LOOK = "look"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Touched:
    """Something that the plan rests on has changed."""


@dataclass(frozen=True, slots=True)
class Due:
    """The time may have come."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A look found all as it should be."""

    wanted: str
    """What is wanted, in any form: to tell what was undone from what has to be another by now."""


@dataclass(frozen=True, slots=True)
class Drifted:
    """A look found something to write."""

    wanted: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A look found that nothing must be written."""

    why: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """A look could not be had."""

    why: str


@dataclass(frozen=True, slots=True)
class Written:
    """The write was made."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """The write was not made, because somebody wrote since the look."""


@dataclass(frozen=True, slots=True)
class NotWritten:
    """The write was not made, or nobody knows whether it was."""

    why: str
    refused: bool
    """Whether the API server takes it from nobody."""


Event = Touched | Due | Whole | Drifted | Refused | Unseen | Written | Overtaken | NotWritten


class Cause(Enum):
    """Why something is written."""

    FIRST = "first"
    UNDONE = "undone"
    MOVED = "moved"
    """Another thing is wanted now: dnsproxy has another address, or there are other zones."""


@dataclass(frozen=True, slots=True)
class WatchState:
    """Where a watcher stands; times are seconds of one clock."""

    standing: Standing = Standing.STARTING
    why: str = ""
    """Of `refused` and `unknown`."""
    doing: Action | None = None
    look_at: float = -inf
    """When the next look is due, unless something is being done."""
    hold_until: float = -inf
    """Nothing is written before."""
    looked_at: float = -inf
    touched: bool = False
    """Whether something changed while something was being done."""
    wanted: str | None = None
    """What was wanted when it stood last; None before it first did."""
    pending: str = ""
    """What is being written."""
    cause: Cause = Cause.FIRST
    backoff: Backoff = field(default_factory=Backoff)
    setbacks: int = 0
    """Failures in a row."""
    repairs: int = 0
    """Writes after the first, so far."""
    undone: int = 0
    """How often somebody undid it, so far."""

    @property
    def held(self) -> float:
        """The seconds that the last wait took."""
        return wait_of(self.backoff)


def watch_step(state: WatchState, event: Event, now: float, draw: float) -> tuple[WatchState, Action | None]:
    """The state after an event, and what to do now. `draw` is from [0, 1)."""
    match event:
        case Touched():
            return _touch(state, now, draw), None
        case Due():
            due = state.doing is None and now >= state.look_at
            return (_begin(state, Action.LOOK), Action.LOOK) if due else (state, None)
        case Drifted(wanted):
            return _drift(state, wanted, now, draw)
        case _:
            return _settle(_end(state, event, now, draw), now, draw), None


def _touch(state: WatchState, now: float, draw: float) -> WatchState:
    if state.doing is not None:
        return replace(state, touched=True)
    return replace(state, look_at=min(state.look_at, _soon(state, now, draw)))


def _soon(state: WatchState, now: float, draw: float) -> float:
    gap = HELD_GAP if now < state.hold_until else GAP
    return max(now + JITTER * draw, state.looked_at + gap)


def _begin(state: WatchState, action: Action) -> WatchState:
    return replace(state, doing=action, touched=False if action is Action.LOOK else state.touched)


def _drift(state: WatchState, wanted: str, now: float, draw: float) -> tuple[WatchState, Action | None]:
    backoff, hold, undone = state.backoff, state.hold_until, state.undone
    if state.backoff.stands_since is not None:
        # Whatever the cause, what has to be written again and again is written more and more rarely.
        backoff = lost(state.backoff, now)
        hold = max(hold, now + wait_of(backoff) * (1 + _SPREAD * draw)) if wait_of(backoff) else hold
        undone += wanted == state.wanted
    cause = Cause.FIRST if state.wanted is None else Cause.UNDONE if wanted == state.wanted else Cause.MOVED
    state = replace(
        state, doing=None, looked_at=now, backoff=backoff, hold_until=hold, undone=undone, pending=wanted, cause=cause
    )
    if now >= hold:
        return _begin(replace(state, standing=Standing.REPAIRING, why=""), Action.WRITE), Action.WRITE
    # What kept us from writing last time goes on to be said.
    kept = state.standing in (Standing.REFUSED, Standing.UNKNOWN) and not wait_of(backoff)
    state = state if kept else replace(state, standing=Standing.UNDONE, why="")
    return _settle(replace(state, look_at=hold), now, draw), None


def _end(state: WatchState, event: Event, now: float, draw: float) -> WatchState:
    """What was being done has ended so."""
    state = replace(state, doing=None)
    setbacks = state.setbacks + 1
    match event:
        case Whole(wanted):
            later = now + HEARTBEAT * (1 - _SPREAD * draw)
            backoff = stood(state.backoff, now)
            return replace(
                state, standing=Standing.INSTALLED, why="", wanted=wanted, backoff=backoff, look_at=later,
                looked_at=now, hold_until=-inf, setbacks=0,
            )  # fmt: skip
        case Refused(why):
            later = now + _backoff(setbacks, 2.0, 60.0, draw)
            return replace(state, standing=Standing.REFUSED, why=why, look_at=later, looked_at=now, setbacks=setbacks)
        case Unseen(why):
            later = now + _backoff(setbacks, 1.0, 30.0, draw)
            return replace(state, standing=Standing.UNKNOWN, why=why, look_at=later, looked_at=now, setbacks=setbacks)
        case Written():
            repairs = state.repairs + (state.cause is not Cause.FIRST)
            backoff = stood(state.backoff, now)
            return replace(state, wanted=state.pending, backoff=backoff, repairs=repairs, look_at=now)
        case Overtaken():
            return replace(state, look_at=now + _backoff(setbacks, 0.1, 3.0, draw), setbacks=setbacks)
        case NotWritten(why, refused):
            later = now + _backoff(setbacks, 5.0, 300.0, draw)
            standing = Standing.REFUSED if refused else Standing.UNKNOWN
            return replace(state, standing=standing, why=why, look_at=later, hold_until=later, setbacks=setbacks)
    raise TypeError(event)


def _settle(state: WatchState, now: float, draw: float) -> WatchState:
    """Look again soon at what changed meanwhile."""
    if not state.touched:
        return state
    return replace(state, touched=False, look_at=min(state.look_at, _soon(state, now, draw)))


def _backoff(setbacks: int, first: float, longest: float, draw: float) -> float:
    """Seconds after so many failures in a row (from 1), drawn from the upper half."""
    return min(longest, first * 2.0 ** min(setbacks - 1, 16)) * (1 + draw) / 2
