"""Processes that others keep off the processor as little as possible (sched(7)).

The law: only sessions that we started. A real-time policy would not do: of each second that such a process fills, the
kernel takes 50 ms away.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_HIGHEST: Final = -20


def put_first(session: int) -> None:
    """Let a process and its session run before all others on their processors. Takes root."""
    os.setpriority(os.PRIO_PROCESS, session, _HIGHEST)
    group = Path("/proc") / str(session) / "autogroup"
    if group.exists():
        # Sessions share a processor in equal parts, whatever the priorities of their processes are.
        group.write_text(str(_HIGHEST))
