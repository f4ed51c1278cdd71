"""Whom to tell of a new version, and when again (RFC 1996 sections 3.6 and 4).

The law: pure; `now` in seconds. A secondary is told until it has asked for the current version, at longer and longer
intervals, and never twice within PAUSE, or SHORT_PAUSE if it keeps up. A zone that it refuses is not told to it again.
A transfer does not tell which of several secondaries at one address made it: each has to answer the NOTIFY, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final, Generic, TypeVar

PAUSE: Final = 0.5
"""Seconds between two NOTIFYs about new versions to a secondary that has not fetched the one before."""
SHORT_PAUSE: Final = 0.05
"""The same for one that has: what comes meanwhile is told together."""
FIRST_RETRY: Final = 1.0
"""Seconds; RFC 1996 section 3.6 asks for the interval to grow."""
LONGEST_RETRY: Final = 60.0

Target = TypeVar("Target", bound=Hashable)


@dataclass(slots=True)
class _State:
    due: float = -inf
    told: float = -inf
    retry: float = FIRST_RETRY
    has: int | None = None
    """The serial that the secondary has, as far as is known."""
    refuses: bool = False
    agreed: int | None = None
    """The serial of the last NOTIFY that the secondary answered."""
    fetched_nearby: int | None = None
    """The serial that a secondary at this address got, one of several."""


@dataclass(slots=True)
class NotifyBook(Generic[Target]):
    """One zone's secondaries."""

    serial: int = 0
    _states: dict[Target, _State] = field(default_factory=dict)

    def set_targets(self, targets: Iterable[Target]) -> None:
        """Tell these from now on, the new ones at once."""
        self._states = {target: self._states.get(target) or _State() for target in targets}

    def publish(self, serial: int, *, now: float) -> None:
        """There is a new version."""
        before, self.serial = self.serial, serial
        for state in self._states.values():
            state.due = max(now, state.told + (SHORT_PAUSE if state.has == before else PAUSE))
            state.retry = FIRST_RETRY

    def due(self, now: float) -> list[Target]:
        """Those to tell now, those who wait longest first."""
        if not self.serial:
            return []
        found = [
            (state.due, target) for target, state in self._states.items() if self._waits(state) and state.due <= now
        ]
        found.sort(key=lambda one: one[0])
        return [target for _, target in found]

    def next_due(self) -> float:
        """When the next one is to be told; never before there is a version."""
        if not self.serial:
            return inf
        return min((state.due for state in self._states.values() if self._waits(state)), default=inf)

    def told(self, target: Target, *, now: float) -> None:
        """A NOTIFY was sent."""
        state = self._states.get(target)
        if state is not None:
            state.told, state.due = now, now + state.retry
            state.retry = min(2 * state.retry, LONGEST_RETRY)

    def refused(self, target: Target) -> None:
        """The secondary does not have this zone."""
        state = self._states.get(target)
        if state is not None:
            state.refuses = True

    def has(self, target: Target, serial: int) -> None:
        """The secondary has a version."""
        state = self._states.get(target)
        if state is not None:
            state.has, state.refuses = serial, False
            state.due = min(state.due, state.told + SHORT_PAUSE)

    def has_one_of(self, targets: Iterable[Target], serial: int) -> None:
        """One of these secondaries, at one address, has a version."""
        for target in targets:
            state = self._states.get(target)
            if state is not None:
                state.fetched_nearby = serial
                self._conclude(target, state)

    def agreed(self, target: Target, serial: int) -> None:
        """The secondary answered the NOTIFY of a version."""
        state = self._states.get(target)
        if state is not None:
            state.agreed = serial
            self._conclude(target, state)

    def _conclude(self, target: Target, state: _State) -> None:
        if state.agreed is not None and state.agreed == state.fetched_nearby:
            self.has(target, state.agreed)

    @property
    def behind(self) -> int:
        """How many secondaries do not have the current version, as far as is known."""
        return sum(self._waits(state) for state in self._states.values()) if self.serial else 0

    def _waits(self, state: _State) -> bool:
        return state.has != self.serial and not state.refuses
