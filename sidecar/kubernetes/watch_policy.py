"""Steps: what to do next, and when: list, or watch from a version.

The law: decisions only, from values to values; the clock's reading and the random number are handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from sidecar.kubernetes.errors import ApiError, Garbled, Gone, NotFound

_MOST_IN_PAGE: Final = 5000


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast, how long, how often; times in seconds."""

    page_size: int = 500
    """Objects in the first chunk of a list."""
    page_octets: int = 2_000_000
    """About so large are the others. A chunk costs the API server some 30 ms where there are 100,000 objects, however
    few of them are in it; and us a millisecond in one go for as many octets."""
    slice_size: int = 50
    """Changes handed over at once, so that whoever handles them holds up the loop for half a millisecond only."""
    list_timeout: float = 60.0
    """For one chunk of a list."""
    watch_timeout: float = 45.0
    """The server is asked to end each watch after this long. A silent connection looks just like a quiet cluster, so
    this, and not bookmarks (which come about every minute, and are not promised), is the heartbeat."""
    watch_grace: float = 10.0
    """How much later than that a watch is given up; the sum stays below a minute."""
    steady: float = 1.0
    """A watch that ends sooner has failed, whatever it says."""
    backoff_first: float = 1.0
    backoff_limit: float = 30.0
    """As client-go's reflector."""
    retry_after_limit: float = 300.0
    """A server that asks for more is asked again after this."""
    confirm: float = 2.0
    """Between a list that lost nearly everything and the second one that confirms it."""
    relist: float = 3600.0
    """A whole list at least this often: insurance against changes that a watch never showed."""


DEFAULT_PACE: Final = Pace()


@dataclass(frozen=True, slots=True)
class Position:
    """Where a follower stands between two steps."""

    version: str = ""
    """Watch from here; empty: list."""
    wait: float = 0.0
    """Seconds to wait before."""
    failures: int = 0
    """Failures since the last steady watch."""
    doubted: bool = False
    """The last complete list was not believed; the next one is, whatever it says."""
    listed_at: float = -inf


def after_list(position: Position, *, version: str, now: float) -> Position:
    """A whole list was read and believed. Failures count on: a list that works proves nothing about the watch."""
    return replace(position, version=version, wait=0.0, doubted=False, listed_at=now)


def after_doubt(position: Position, *, pace: Pace) -> Position:
    """A whole list was read that nearly emptied the store."""
    return replace(position, version="", wait=pace.confirm, doubted=True)


def after_watch(position: Position, *, version: str, now: float, pace: Pace) -> Position:
    """A watch that held was ended by the server, in good order, at `version`."""
    due = now - position.listed_at >= pace.relist
    return replace(position, version="" if due else version, failures=0, wait=0.0)


def after_error(
    position: Position, *, error: ApiError, version: str, lasted: float, pace: Pace, random: float
) -> Position:
    """A list (`version` empty) or a watch failed. A list begins anew: a continue token may be what was wrong."""
    if lasted >= pace.steady and version:
        position = replace(position, failures=0)
    # From the same version, the same garbage or absence would come again.
    position = replace(position, version="" if isinstance(error, Gone | Garbled | NotFound) else version)
    if isinstance(error, Gone) and not position.failures:
        # The first costs no time: it is the normal end of a watch that was away for too long.
        return replace(position, failures=1, wait=0.0)
    position = _fail(position, pace=pace, random=random)
    asked = min(error.retry_after or 0.0, pace.retry_after_limit)
    return replace(position, wait=max(position.wait, asked))


def next_page_size(*, octets: int, objects: int, pace: Pace) -> int:
    """Objects to ask for in the next chunk of a list, after one of so many objects and octets."""
    return max(1, min(pace.page_octets * max(objects, 1) // max(octets, 1), _MOST_IN_PAGE))


def backoff(failures: int, *, pace: Pace, random: float) -> float:
    """Seconds to wait after so many failures in a row (from 0): doubling to the limit, drawn from the upper half.

    `random` is in [0, 1): many clients that lost one server must not come back together.
    """
    ceiling = min(pace.backoff_first * 2.0 ** min(failures + 1, 32), pace.backoff_limit)
    return max(pace.backoff_first, ceiling / 2 * (1 + random))


def _fail(position: Position, *, pace: Pace, random: float) -> Position:
    wait = backoff(position.failures, pace=pace, random=random)
    return replace(position, failures=position.failures + 1, wait=wait)
