"""The store: which objects the cluster is known to hold, each with its resource version.

The law: what a list or an event shows exists and counts at once; what is missing counts only when a whole list has
been read. So no cut list, lost connection or restart of the API server ever takes an object out. The objects
themselves stay with whoever receives the changes; here a version per key is enough to tell what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

from sidecar.kubernetes.objects import Resource, Unreadable
from sidecar.kubernetes.protocol import Entry

T = TypeVar("T", bound=Resource)

_FEW: Final = 20
"""Below this many objects, losing most of them is daily business."""
_LITTLE_LEFT: Final = 10
"""A list with less than this fraction (one tenth) of what was held is doubted."""


class Store(Generic[T]):
    """What one kind's lists and watches add up to."""

    def __init__(self, *, expected: int = 0) -> None:
        self._versions: dict[str, str] = {}
        self.expected = expected
        """How many objects an earlier run knew, until a list is believed: the first one is judged by them too."""

    def __len__(self) -> int:
        return len(self._versions)

    def apply(self, entries: Iterable[Entry[T]]) -> dict[str, T | Unreadable | None]:
        """Take entries in, oldest first; the result is each key that is new, changed or (None) deleted."""
        changes: dict[str, T | Unreadable | None] = {}
        for key, version, value in entries:
            if value is None:
                if self._versions.pop(key, None) is not None:
                    changes[key] = None
            elif self._versions.get(key) != version or not version:
                self._versions[key] = version
                changes[key] = value
        return changes

    def relist(self) -> Relist[T]:
        """Begin to read the whole collection again."""
        return Relist(self)

    def held(self) -> dict[str, str]:
        """The keys held now, with their versions."""
        # No set of the keys: this copy takes a fifth of the time, and the garbage collector does not walk through it.
        return self._versions.copy()


class Relist(Generic[T]):
    """One reading of the whole collection, page by page; dropped, without a trace, when it is cut."""

    def __init__(self, store: Store[T]) -> None:
        self._store = store
        self.held = max(len(store), store.expected)
        """How many objects there should be, more or less."""
        self._unseen = store.held()

    def take(self, entries: list[Entry[T]]) -> dict[str, T | Unreadable | None]:
        """Take one page in; the result is what is new or changed."""
        for entry in entries:
            self._unseen.pop(entry.key, None)
        return self._store.apply(entries)

    @property
    def is_doubtful(self) -> bool:
        """Whether the list, now complete, lost so much at once that it is likelier wrong than true.

        Empty lists have come from API servers that were starting, upgrading or losing their storage.
        """
        left = len(self._store) - len(self._unseen)
        return (left == 0 < self.held) or (self.held >= _FEW and left * _LITTLE_LEFT < self.held)

    def missing(self) -> Iterator[Entry[T]]:
        """Once the list is complete and believed: the deletions that it implies, to be applied."""
        return (Entry(key, "", None) for key in self._unseen)
