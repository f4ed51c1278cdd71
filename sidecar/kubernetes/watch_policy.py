"""The policy of a watch: whether to list, to check or to watch next, from which version, and when.

The law: only decisions, from values to values; the caller passes the time and the random number.

An API server whose etcd was restored to an older state accepts a watch from a version that it does not have yet, and
sends nothing, neither an event nor a bookmark nor an error, until it has that version again. So after a lost connection
one list of a single object asks for the present version. That read is consistent: a replica with an old watch cache
answers from etcd, and a lower version means that etcd has gone back. If the restored server has passed the version by
then, only the list of every hour shows what is missing.
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
    most_octets: int = 8 << 20
    """The largest chunk of several objects that is taken in, so that memory does not depend on what others create."""
    slice_size: int = 50
    """Changes per call of `on_change`, so that handling them blocks the loop for only half a millisecond."""
    slice_octets: int = 64 << 10
    """Of objects that are decoded in one go, because one object may be as large as a thousand others. A larger object
    is decoded by itself."""
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
    """Between a list that lost nearly all objects, or a version that went back, and the look that confirms it."""
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
    seen: str = ""
    """The last version that the server sent; unlike `version`, it stays when a list is due."""
    unsure: bool = False
    """The connection was lost: check whether the server still has `version` before a watch from there."""
    went_back: bool = False
    """The last check found an earlier version; if the next one does too, it is believed."""


def is_earlier(version: str, *, than: str) -> bool:
    """Whether both are decimal numbers, as etcd's are, and one is lower; other versions are opaque (KEP-5504)."""
    return _is_number(version) and _is_number(than) and (len(version), version) < (len(than), than)


def after_pages(position: Position, *, version: str) -> Position:
    """The server sent a list, or a part of it, of this version (empty: nothing).

    Otherwise each attempt at a list that fails would find the same earlier state again.
    """
    return replace(position, seen=version or position.seen)


def after_list(position: Position, *, version: str, now: float) -> Position:
    """A whole list was read and accepted. The failures remain: a list that works proves nothing about the watch."""
    return replace(
        position,
        version=version,
        wait=0.0,
        doubted=False,
        listed_at=now,
        seen=version,
        unsure=False,
        went_back=False,
    )


def after_doubt(position: Position, *, pace: Pace) -> Position:
    """A whole list was read that would nearly empty the store."""
    return replace(position, version="", wait=pace.confirm, doubted=True)


def after_check(position: Position, *, current: str, now: float, pace: Pace) -> Position:
    """The server has the version `current` now. An earlier one is confirmed by a second look, then there is a list.

    Such lists are `backoff_limit` apart: behind a storage that answers with old versions now and then, a follower must
    not list for ever.
    """
    if not is_earlier(current, than=position.version):
        return replace(position, wait=0.0, unsure=False, went_back=False)
    if position.went_back:
        return replace(position, version="", wait=0.0)
    wait = position.listed_at + pace.backoff_limit - now
    return replace(position, wait=min(max(wait, pace.confirm), pace.backoff_limit), went_back=True)


def after_watch(position: Position, *, version: str, now: float, lasted: float, pace: Pace) -> Position:
    """The server ended a steady watch regularly, at `version`; sooner than it was asked to, if it is shutting down."""
    due, early = now - position.listed_at >= pace.relist, lasted < pace.watch_timeout
    return replace(position, version="" if due else version, failures=0, wait=0.0, seen=version, unsure=early)


def after_error(
    position: Position, *, error: ApiError, version: str, lasted: float, pace: Pace, random: float
) -> Position:
    """A list (`version` empty), a check or a watch failed. A list starts again: its continue token may be the cause."""
    if lasted >= pace.steady and version:
        position = replace(position, failures=0)
    if version:
        position = replace(position, seen=version, unsure=True)
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


def _is_number(version: str) -> bool:
    # As in client-go's resourceversion.CompareResourceVersion: no sign and no leading zero, so that lengths compare.
    return version.isascii() and version.isdigit() and not version.startswith("0")


def _fail(position: Position, *, pace: Pace, random: float) -> Position:
    wait = backoff(position.failures, pace=pace, random=random)
    return replace(position, failures=position.failures + 1, wait=wait)
