"""Which processors serve and which make the load.

The law: every server gets the same one, so that a server's figure is that of one core and the load takes none of it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cpus:
    """Numbers of processors; the two sets are one where there is only one processor, or pinning is not wanted."""

    server: frozenset[int]
    load: frozenset[int]


def split_cpus(available: Collection[int], *, pin: bool = True) -> Cpus:
    """The first for the server, all others for the load."""
    everything = frozenset(available)
    if not pin or len(everything) == 1:
        return Cpus(everything, everything)
    first = frozenset({min(everything)})
    return Cpus(first, everything - first)


@contextmanager
def pinned(cpus: Collection[int]) -> Iterator[None]:
    """What is started in this block runs on these processors, from its first instruction and in all its threads."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
