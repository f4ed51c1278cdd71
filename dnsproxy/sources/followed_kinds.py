"""The kinds of one source that are followed now, each in one version, by the last discoveries.

The law: it begins and ends watches in name only; source_follower.py runs them. A kind whose version changes keeps the
objects of the old one until the new one was read. Tested in test_source_follower.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dnsproxy.sources.followed_kind import FollowedKind
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.objects import Collection


class Adopted(NamedTuple):
    """What a discovery has changed."""

    begun: list[FollowedKind]
    """Kinds to follow from now on."""
    any_ended: bool
    """Whether a kind is gone: a second discovery missed it, too."""
    seems_any_gone: bool
    """Whether this is the first discovery that misses a kind, which another one must confirm."""


class FollowedKinds:
    """`beside`: collections that every API server has."""

    def __init__(self, beside: Sequence[Collection[Any]]) -> None:
        self.beside = tuple(FollowedKind(one) for one in beside)
        self._kinds: dict[str, FollowedKind] = {}

    @property
    def statuses(self) -> list[FollowerStatus]:
        """The status of the watches of the served kinds."""
        return [one.status for one in (*self._kinds.values(), *self.beside) if one.is_served]

    @property
    def are_read(self) -> bool:
        """Whether each was read once, or is waited for no more."""
        return not any(one.is_awaited for one in (*self._kinds.values(), *self.beside))

    def collection(self, kind: str) -> Collection[Any] | None:
        """Where the objects of a kind are read at the moment; None if the API server does not have it."""
        one = self._kinds.get(kind)
        return one.collection if one is not None and one.is_served else None

    def paths(self) -> dict[str, str]:
        """Where each served kind is."""
        return {name: kind.collection.path for name, kind in self._kinds.items() if kind.is_served}

    def unread(self) -> frozenset[str]:
        """The served kinds that were never read."""
        return frozenset(name for name, one in self._kinds.items() if one.is_served and not one.status.synced)

    def adopt(self, chosen: Mapping[str, Collection[Any]]) -> Adopted:
        """Take in what a discovery has found."""
        begun = []
        for name, collection in chosen.items():
            kind = self._kinds.get(name)
            if kind is None or not kind.is_served or kind.collection.path != collection.path:
                kind = self._replace(collection)
                begun.append(kind)
            kind.is_missed = False
        missed = [kind for name, kind in self._kinds.items() if kind.is_served and name not in chosen]
        for kind in missed:
            if kind.is_missed:
                kind.stop()
            kind.is_missed = True
        served = sum(kind.is_served for kind in missed)
        return Adopted(begun, any_ended=served < len(missed), seems_any_gone=served > 0)

    def give_up(self, now: float) -> list[FollowedKind]:
        """Wait no more for kinds whose lists fail; returns those that were waited for until now."""
        hopeless = [kind for kind in self._kinds.values() if kind.is_hopeless(now)]
        for kind in hopeless:
            kind.is_given_up = True
        return hopeless

    def take_gone(self) -> Iterator[tuple[str, str]]:
        """The kind and key of each object that is gone, once; the kinds may change in between."""
        for name, kind in list(self._kinds.items()):
            for key in kind.take_gone() if self._kinds[name] is kind else ():
                yield name, key
                if self._kinds[name] is not kind:
                    break

    def _replace(self, collection: Collection[Any]) -> FollowedKind:
        """The kind in another version, or again."""
        old = self._kinds.get(collection.kind)
        if old is not None:
            old.life.cancel()
        before = {} if old is None else {**old.before, **old.known}
        kind = FollowedKind(collection, optional=collection.optional, before=before)
        self._kinds[collection.kind] = kind
        return kind
