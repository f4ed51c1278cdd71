"""Bounded work: a job for each item, bounded in number at once and in time.

The law: jobs start in the order of the items, so that the first ones are done if the time ends early. A job that is not
finished by then is cancelled and counted, never an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import trio

from dnsproxy.doctor.facts.model import ReadFailure

T = TypeVar("T")
R = TypeVar("R")

TOGETHER: Final = 32


@dataclass(frozen=True, slots=True)
class Finished(Generic[R]):
    """The results of the jobs that finished in time."""

    results: tuple[R, ...]
    """In the order of the items."""
    count: int
    """How many items there were."""
    seconds: float

    def failures(self, what: str, items: str) -> tuple[ReadFailure, ...]:
        """What to report: `3 of 40 connections did not finish within 60 s`; nothing if all did."""
        missing = self.count - len(self.results)
        why = f"{missing} of {self.count} {items} did not finish within {self.seconds:g} s"
        return (ReadFailure(what, why),) if missing else ()


async def run_all(
    job: Callable[[T], Awaitable[R]], items: Sequence[T], on_done: Callable[[int], None], *, seconds: float
) -> Finished[R]:
    """Run a job for each item, TOGETHER at once; `on_done` is called with the number of finished jobs."""
    found: dict[int, R] = {}
    waiting = iter(enumerate(items))

    async def work() -> None:
        for index, item in waiting:
            found[index] = await job(item)
            on_done(len(found))

    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            for _ in range(min(TOGETHER, len(items))):
                nursery.start_soon(work)
    return Finished(tuple(found[index] for index in sorted(found)), len(items), seconds)
