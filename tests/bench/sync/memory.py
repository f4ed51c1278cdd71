"""The memory of a process, as the kernel counts it (proc(5), /proc/PID/status and smaps_rollup)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """In MiB."""

    resident: float
    peak: float
    """The most that ever was resident."""


def read_memory(process: int) -> Memory:
    """Of a process that runs. Raises OSError."""
    return parse_memory((Path("/proc") / str(process) / "status").read_text())


def read_proportional(process: int) -> float:
    """MiB of a process that runs, of pages that it shares its part alone. Raises OSError."""
    return parse_proportional((Path("/proc") / str(process) / "smaps_rollup").read_text())


def parse_proportional(text: str) -> float:
    """From /proc/PID/smaps_rollup. Raises ProcessLookupError for a process without memory."""
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    if found is None:
        raise ProcessLookupError("it has no memory any more")
    return int(found[1]) / _KIB_PER_MIB


def parse_memory(text: str) -> Memory:
    """From /proc/PID/status. Raises ProcessLookupError for a process that is only waited for any more."""
    fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
    if "VmRSS" not in fields:
        raise ProcessLookupError("it has no memory any more")
    return Memory(int(fields["VmRSS"]) / _KIB_PER_MIB, int(fields["VmHWM"]) / _KIB_PER_MIB)


@contextmanager
def sampled(process: int, *, every: float) -> Iterator[list[Memory]]:
    """Samples at the beginning of a block and then every so many seconds, until it ends or the process does."""
    found: list[Memory] = []
    ended = threading.Event()

    def sample() -> None:
        try:
            found.append(read_memory(process))
            while not ended.wait(every):
                found.append(read_memory(process))
        except OSError:
            return

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
