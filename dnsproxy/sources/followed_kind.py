"""One kind in one version: how it is followed, and which of its objects are known.

The law: values only; followed_kinds.py keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import trio

from sidecar.kubernetes.errors import ServerTrouble
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.objects import Collection

PATIENCE: Final = 30.0
"""Seconds that a kind is waited for whose list fails while the API server answers."""


class FollowedKind:
    """The watch of a kind, and its objects."""

    def __init__(
        self, collection: Collection[Any], *, optional: bool = False, before: dict[str, None] | None = None
    ) -> None:
        self.collection = collection
        self.optional = optional
        """Whether the others are not kept waiting for it for ever."""
        self.since = trio.current_time()
        self.is_given_up = False
        """The first sync does not wait for it any more."""
        self.status = FollowerStatus(collection.kind)
        self.life = trio.CancelScope()
        self.is_served = True
        self.is_missed = False
        """The last discovery did not find it; the next one decides."""
        self.known: dict[str, None] = {}
        self.before = before or {}
        """Objects known from another version and not yet seen in this one."""

    @property
    def is_awaited(self) -> bool:
        """Whether it must be read once before the source is complete."""
        return self.is_served and not self.status.synced and not self.is_given_up

    def is_hopeless(self, now: float) -> bool:
        """Whether the API server has failed to list it for PATIENCE seconds: a conversion webhook may be dead."""
        fails = isinstance(self.status.error, ServerTrouble)
        return self.optional and self.is_awaited and fails and now - self.since >= PATIENCE

    def note(self, key: str, *, exists: bool) -> None:
        """Note that this version has an object, or has it no more."""
        self.before.pop(key, None)
        if exists:
            self.known[key] = None
        else:
            self.known.pop(key, None)

    def stop(self) -> None:
        """The server has the kind no more: all its objects are gone."""
        self.life.cancel()
        self.is_served = False
        self.before |= self.known
        self.known = {}

    def take_gone(self) -> Iterator[str]:
        """The objects that another version had and this one has not, or all if the kind is gone; each only once."""
        while self.before and (self.status.synced or not self.is_served):
            yield self.before.popitem()[0]
