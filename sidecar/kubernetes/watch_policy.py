"""The policy of a watch: whether to list or to watch next, from which version, and when.

The law: only decisions, from values to values; the caller passes the time and the random number.
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
    """Approximate size of the later chunks. With 100,000 objects a chunk takes the API server about 30 ms, however few
    objects it contains; 2 MB take this program a millisecond without a break."""
    slice_size: int = 50
    """Changes per call of `on_change`, so that handling them blocks the loop for only half a millisecond."""
    list_timeout: float = 60.0
    """For one chunk of a list."""
    watch_timeout: float = 45.0
    """The server is asked to end each watch after this time. A dead connection looks like a quiet cluster, so this is
    the heartbeat; bookmarks come only about every minute, and are not guaranteed."""
    watch_grace: float = 10.0
    """Additional time before a watch is abandoned; the sum stays below a minute."""
    steady: float = 1.0
    """A watch that ends sooner has failed, whatever its last message."""
    backoff_first: float = 1.0
    backoff_limit: float = 30.0
    """As in client-go's reflector."""
    retry_after_limit: float = 300.0
    """The longest Retry-After that is obeyed."""
    confirm: float = 2.0
    """Between a list that lost nearly all objects and the second list that confirms it."""
    relist: float = 3600.0
    """A whole list at least this often, in case a watch missed a change."""


DEFAULT_PACE: Final = Pace()


@dataclass(frozen=True, slots=True)
class Position:
    """The state of a follower between two requests."""

    version: str = ""
    """Watch from here; empty: list."""
    wait: float = 0.0
    """Seconds to wait before the next request."""
    failures: int = 0
    """Failures since the last steady watch."""
    doubted: bool = False
    """The last complete list was doubted; the next one is accepted, whatever it contains."""
    listed_at: float = -inf


def after_list(position: Position, *, version: str, now: float) -> Position:
    """A whole list was read and accepted. The failures remain: a list that works proves nothing about the watch."""
    return replace(position, version=version, wait=0.0, doubted=False, listed_at=now)


def after_doubt(position: Position, *, pace: Pace) -> Position:
    """A whole list was read that would nearly empty the store."""
    return replace(position, version="", wait=pace.confirm, doubted=True)


def after_watch(position: Position, *, version: str, now: float, pace: Pace) -> Position:
    """The server ended a steady watch regularly, at `version`."""
    due = now - position.listed_at >= pace.relist
    return replace(position, version="" if due else version, failures=0, wait=0.0)


def after_error(
    position: Position, *, error: ApiError, version: str, lasted: float, pace: Pace, random: float
) -> Position:
    """A list (`version` empty) or a watch failed. A list starts again: its continue token may be the cause."""
    if lasted >= pace.steady and version:
        position = replace(position, failures=0)
    # The same version would bring the same error again.
    position = replace(position, version="" if isinstance(error, Gone | Garbled | NotFound) else version)
    if isinstance(error, Gone) and not position.failures:
        # The first one needs no wait: it is the normal end of a watch that was interrupted for too long.
        return replace(position, failures=1, wait=0.0)
    position = _fail(position, pace=pace, random=random)
    asked = min(error.retry_after or 0.0, pace.retry_after_limit)
    return replace(position, wait=max(position.wait, asked))


def next_page_size(*, octets: int, objects: int, pace: Pace) -> int:
    """Objects to request in the next chunk of a list, given the size of the last one."""
    return max(1, min(pace.page_octets * max(objects, 1) // max(octets, 1), _MOST_IN_PAGE))


def backoff(failures: int, *, pace: Pace, random: float) -> float:
    """Seconds to wait after this many failures in a row (from 0): doubles up to the limit, drawn from the upper half.

    `random` is in [0, 1): many clients that lost one server must not return at the same time.
    """
    ceiling = min(pace.backoff_first * 2.0 ** min(failures + 1, 32), pace.backoff_limit)
    return max(pace.backoff_first, ceiling / 2 * (1 + random))


def _fail(position: Position, *, pace: Pace, random: float) -> Position:
    wait = backoff(position.failures, pace=pace, random=random)
    return replace(position, failures=position.failures + 1, wait=wait)
