"""Processes that others keep off the processor as little as possible (sched(7)).

The law: what is started in the block has the priority from its first instruction, and gives it to all it starts. Root.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_LEVEL = 1


@contextmanager
def realtime(*, wanted: bool) -> Iterator[None]:
    """For the time of a block, processes are started before all others on their processor, if that is wanted."""
    if not wanted:
        yield
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_LEVEL))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
