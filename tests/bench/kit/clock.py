"""The processor time of a server, from its own clock: utime and stime of /proc/PID/stat, and schedstat (proc(5)).

The law: all threads and all processes of the server count, whatever it forked, and nobody else's. A server is started
as the leader of a session (launched.py), and what it forks stays in it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds. The kernel knows the sum of user and system exactly, and the split only roughly."""

    user: float = 0.0
    system: float = 0.0
    queued: float = 0.0
    """Ready to run, while others had the processor: what the machine, not the server, is to blame for."""

    @property
    def total(self) -> float:
        """Time on a processor."""
        return self.user + self.system

    def __add__(self, other: CpuTime) -> CpuTime:
        return CpuTime(self.user + other.user, self.system + other.system, self.queued + other.queued)

    def __sub__(self, other: CpuTime) -> CpuTime:
        return CpuTime(self.user - other.user, self.system - other.system, self.queued - other.queued)


def read_seconds(process: int) -> float:
    """The processor time of one process, whatever session it is in. Raises OSError."""
    _, user, system = parse_stat((Path("/proc") / str(process) / "stat").read_text(errors="replace"))
    return (user + system) * _TICK


def parse_stat(line: str) -> tuple[int, int, int]:
    """The session of a process, and its user and system time in ticks, from /proc/PID/stat."""
    # The second field is the command in parentheses, which may hold blanks and parentheses itself.
    fields = line.rpartition(")")[2].split()
    return int(fields[3]), int(fields[11]), int(fields[12])


def parse_schedstat(line: str) -> float:
    """The seconds that a thread was ready to run and did not, from /proc/PID/task/TID/schedstat."""
    return int(line.split()[1]) / 1e9


def read_clock(session: int) -> CpuTime:
    """The time that the processes of a session have used so far."""
    return sum(_read_processes(session), CpuTime())


def _read_processes(session: int) -> Iterator[CpuTime]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # ended since it was listed
            owner, user, system = parse_stat((folder / "stat").read_text(errors="replace"))
            if owner == session:
                yield CpuTime(user * _TICK, system * _TICK, _read_queued(folder))


def _read_queued(folder: Path) -> float:
    try:
        return sum(parse_schedstat(path.read_text()) for path in folder.glob("task/*/schedstat"))
    except OSError:
        return 0.0
