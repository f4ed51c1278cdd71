"""Shared reads: a client that sends each request of one look at a cluster once, however many readers need its answer.

The law: an answer is shared while its request is under way and afterwards, and so is an ApiError. A long answer is
shared by those who wait for it, and not kept: the pages of a big cluster's lists would be most of a program's memory. A
list whose continue token has expired is forgotten, so that its readers can begin it anew. Only for a program that looks
once: what follows changes, or reads again after a write, has an ApiClient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio

from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.errors import ApiError, Gone, Oversized, TimedOut
from sidecar.kubernetes.reads import Reads

_LONGEST: Final = 256 << 10
"""Octets of an answer that is kept."""

_Key = tuple[str, tuple[tuple[str, str], ...]]


class _Answer:
    """That of one request, once it is there."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.found: bytes | ApiError | None = None
        """None if the request was cancelled, or its answer was too large for its reader."""


class SharedReads:
    """Reads over an ApiClient that is open."""

    def __init__(self, client: Reads) -> None:
        self._client = client
        self._answers: dict[_Key, _Answer] = {}

    @property
    def cluster(self) -> Cluster:
        """The cluster as last read."""
        return self._client.cluster

    async def get(
        self, path: str, params: Mapping[str, str] | None = None, *, seconds: float, largest: int | None = None
    ) -> bytes:
        """As ApiClient.get; `seconds` also bounds the wait for another reader's request."""
        key = path, tuple(sorted((params or {}).items()))
        known = self._answers.get(key)
        if known is not None:
            found = await _wait(known, seconds)
            if found is not None:
                return _given(found, largest)
        return await self._send(key, params, seconds, largest)

    async def _send(self, key: _Key, params: Mapping[str, str] | None, seconds: float, largest: int | None) -> bytes:
        answer = self._answers[key] = _Answer()
        try:
            body = await self._client.get(key[0], params, seconds=seconds, largest=largest)
        except ApiError as error:
            # An Oversized is one reader's own limit.
            answer.found = None if isinstance(error, Oversized) else error
            if isinstance(error, Gone):
                self._forget(key[0])
            raise
        else:
            answer.found = body
            return body
        finally:
            answer.ended.set()
            is_kept = isinstance(answer.found, ApiError) or (answer.found is not None and len(answer.found) <= _LONGEST)
            if not is_kept and self._answers.get(key) is answer:
                del self._answers[key]

    def _forget(self, path: str) -> None:
        """A new list would begin with the chunk that has the expired token, and fail each time."""
        for key in [one for one in self._answers if one[0] == path]:
            del self._answers[key]


async def _wait(answer: _Answer, seconds: float) -> bytes | ApiError | None:
    """Raises TimedOut."""
    try:
        with trio.fail_after(seconds):
            await answer.ended.wait()
    except trio.TooSlowError:
        raise TimedOut(f"no answer within {seconds:g} s") from None
    return answer.found


def _given(found: bytes | ApiError, largest: int | None) -> bytes:
    """Raises the error, or Oversized."""
    if isinstance(found, ApiError):
        raise found
    if largest is not None and len(found) > largest:
        raise Oversized(f"the answer has more than {largest} octets")
    return found
