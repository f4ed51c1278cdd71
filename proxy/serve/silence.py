"""How long a worker has been silent: its reports are its heartbeat, because the loop that relays sends them.

The law: pure. Only time counts in which the worker could have reported: not the time in which the supervisor itself
stood still (it was stopped, the machine was suspended or overloaded), and not the time in which the worker waited for a
processor or a disk. So a busy machine kills no worker.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

LOOK_SECONDS: Final = 0.5
"""Between two looks at a worker."""
LATE_SECONDS: Final = 2.0
"""A look that comes so late shows that the supervisor stood still; reports may be waiting for it."""
QUIET_SECONDS: Final = 2.5
"""Silence after which the relay is not ready: the kernel still gives the worker its share of the new connections."""
HUNG_SECONDS: Final = 5.0
"""Silence after which a worker is replaced. It reports every second."""
START_SECONDS: Final = 60.0
"""The same before its first report."""

_WAITING: Final = frozenset({"R", "D"})
"""Runnable and uninterruptible: a process in these states waits for a processor or a disk, unless it runs."""
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
"""The unit of times in proc(5)."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a process does, and the seconds of processor time that it has used."""

    state: str
    used: float


def parse_activity(stat: str) -> Activity:
    """Read /proc/PID/stat (proc(5)). Raises ValueError."""
    # The name of the program, in parentheses, may contain anything.
    fields = stat.rpartition(")")[2].split()
    try:
        return Activity(fields[0], (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND)
    except IndexError:
        raise ValueError("a line of /proc/PID/stat is cut off") from None


class Silence:
    """The silence of one worker process."""

    def __init__(self) -> None:
        self._reported = False
        self._seconds = 0.0
        self._last: Activity | None = None

    def end(self) -> None:
        """The worker has reported."""
        self._reported = True
        self._seconds = 0.0
        self._last = None

    def look(self, *, elapsed: float, activity: Activity | None) -> None:
        """Count the time since the last look, `elapsed` seconds ago; None if the activity is unknown."""
        if elapsed >= LATE_SECONDS:
            self._seconds = 0.0
        else:
            self._seconds += self._usable(min(elapsed, LOOK_SECONDS), activity)
        self._last = activity

    @property
    def begins(self) -> bool:
        """Whether a report is late, so that the activity of the worker matters."""
        return self._seconds >= QUIET_SECONDS / 2

    @property
    def is_quiet(self) -> bool:
        """Whether a worker that has reported no longer does."""
        return self._reported and self._seconds >= QUIET_SECONDS

    @property
    def is_hung(self) -> bool:
        """Whether the worker has to be replaced."""
        return self._seconds >= (HUNG_SECONDS if self._reported else START_SECONDS)

    def _usable(self, seconds: float, activity: Activity | None) -> float:
        """The part of some seconds in which the worker could have reported."""
        if activity is None or activity.state not in _WAITING:
            return seconds
        # It ran for this long: in a loop without an end this is all of the time.
        return min(seconds, activity.used - self._last.used) if self._last is not None else 0.0
