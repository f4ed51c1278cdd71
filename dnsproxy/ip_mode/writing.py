"""Writes the changes of a plan: write, read again, until nothing is left to change.

The law: every write is read back, because only a read that leaves nothing to change ends the loop. A conflict leads to
a new read, never to a forced write; so does a lost connection, after which nobody knows whether the write was made.
Bounded in time and in writes: a writer that undoes each of them is not overruled.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from dnsproxy.ip_mode.changes import Change
from dnsproxy.ip_mode.survey import SECONDS
from sidecar.kubernetes.errors import ApiError, Conflict, Forbidden, NotFound, Refused
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import one_line

TRYING_SECONDS: Final = 30.0
"""Seconds in which lost connections and conflicts lead to another attempt: an API server restarts in ten."""
WRITES: Final = 3
"""Writes of everything before a writer that undoes each of them wins."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
"""Seconds before the read after a failure: the first pause, which doubles up to the longest."""


async def settle(
    client: ApiClient, first: Sequence[Change], look: Callable[[], Awaitable[Sequence[Change]]]
) -> tuple[Change, ...]:
    """Write until a read leaves nothing to change; the changes made, each once. Raises StartError."""
    made: dict[str, Change] = {}
    deadline = trio.current_time() + TRYING_SECONDS
    changes: Sequence[Change] | None = first
    pending = first
    writes = failures = 0
    while changes is None or changes:
        if writes == WRITES:
            raise StartError(f"{_names(pending)}: another writer undid each write", status=ExitStatus.NO)
        try:
            changes = await look() if changes is None else changes
            pending = changes or pending
            await _write(client, changes, made)
            writes += bool(changes)
            changes = await look()
        except (StartError, ApiError) as error:
            if not _is_passing(error) or trio.current_time() > deadline:
                raise _failure(error, pending) from None
            changes = None
            await trio.sleep(_pause(failures))
            failures += 1
    return tuple(made.values())


async def look_last(look: Callable[[], Awaitable[Sequence[Change]]]) -> tuple[str, str]:
    """Names what another program has changed since, or the reason why that is unknown; empty texts if neither."""
    try:
        return _names(await look()), ""
    except (StartError, ApiError) as error:
        return "", one_line(str(error))


async def _write(client: ApiClient, changes: Sequence[Change], made: dict[str, Change]) -> None:
    for change in changes:
        write = change.write
        await client.change(
            write.method, write.path, write.params, write.content, content_type=write.content_type, seconds=SECONDS
        )
        made[str(change)] = change


def _is_passing(error: StartError | ApiError) -> bool:
    """Whether another attempt may succeed. Not found: deleted after it was read."""
    return isinstance(error, ApiError) and not isinstance(error, (Forbidden, Refused))


def _failure(error: StartError | ApiError, changes: Sequence[Change]) -> StartError:
    if isinstance(error, StartError):
        return error
    names = _names(changes)
    if isinstance(error, (Forbidden, Refused)):
        return StartError(f"{names}: the API server rejects the change: {error}", status=ExitStatus.NO)
    if isinstance(error, (Conflict, NotFound)):
        return StartError(f"{names}: changed by another writer before each write: {error}", status=ExitStatus.NO)
    text = f"{names} may or may not be written: {error}; run this again to complete it"
    return StartError(text, status=ExitStatus.UNKNOWN)


def _names(changes: Sequence[Change]) -> str:
    return ", ".join(f"{change.kind} {change.name}" for change in changes)


def _pause(failures: int) -> float:
    """Seconds to wait, with jitter: two writers that conflicted once should not conflict again."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures, 10))
    return random.uniform(longest / 2, longest)  # noqa: S311  # no secret
