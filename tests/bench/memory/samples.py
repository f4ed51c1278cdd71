"""One look at a process: its memory and its processor time, from the kernel's texts (proc(5)). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_KIB: Final = 1024 / 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory in MB, and seconds."""

    resident: float
    proportional: float
    unique: float
    cpu: float


def parse_sample(rollup: str, *, cpu: float) -> Sample:
    """From /proc/PID/smaps_rollup. Raises ProcessLookupError for a process without memory."""
    sizes = {name: int(size) * _KIB for name, size in re.findall(r"^(\w+):\s+(\d+) kB", rollup, re.MULTILINE)}
    if "Rss" not in sizes:
        raise ProcessLookupError("it has no memory any more")
    return Sample(sizes["Rss"], sizes["Pss"], sizes["Private_Clean"] + sizes["Private_Dirty"], cpu)
