"""What processes use, as the kernel counts it (proc(5)): time to the microsecond, and memory in shares."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Final

from tests.bench.kit.clock import parse_stat

_KIB_PER_MIB: Final = 1024


def read_session_memory(session: int) -> float:
    """The PSS of all processes of a session, in MiB: what they share counts once."""
    found = 0.0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, KeyError):  # ended since it was listed
                if parse_stat((folder / "stat").read_text(errors="replace"))[0] == session:
                    found += read_shares(int(folder.name))[1]
    return found


def read_run_time(pid: int) -> float:
    """Seconds on a processor, to the microsecond, of all threads that are there (proc(5), schedstat)."""
    tasks = (Path("/proc") / str(pid) / "task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in tasks) / 1e9


def read_shares(pid: int) -> tuple[float, float]:
    """Resident and proportional memory, in MiB."""
    return parse_shares((Path("/proc") / str(pid) / "smaps_rollup").read_text())


def parse_shares(text: str) -> tuple[float, float]:
    """From /proc/PID/smaps_rollup."""
    fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
    return int(fields["Rss"]) / _KIB_PER_MIB, int(fields["Pss"]) / _KIB_PER_MIB
