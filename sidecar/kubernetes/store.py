"""The store: the known objects of one kind, each with its resource version.

The law: an object in a list or event exists at once; a missing object is deleted only after a whole list was read. So a
truncated list, a lost connection or a restart of the API server never removes an object. The receiver of the changes
keeps the objects themselves; this store needs only a version per key to detect changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

from sidecar.kubernetes.objects import Resource, Unreadable
from sidecar.kubernetes.protocol import Entry

T = TypeVar("T", bound=Resource)

_FEW: Final = 20
"""Below this many objects, losing most of them is normal."""
_LITTLE_LEFT: Final = 10
"""A list is doubted if less than this fraction (one tenth) of the known objects is left."""


_LONGEST_NUMBER: Final = 18
"""Digits that fit an integer of two words."""

_Packed = int | str


def _pack(version: str) -> _Packed:
    """A version in half the memory, where it is a decimal number as etcd's are; numbers are equal if the texts are."""
    is_number = version.isdigit() and version.isascii() and version[0] != "0" and len(version) <= _LONGEST_NUMBER
    return int(version) if is_number else version


class Store(Generic[T]):
    """The state of one kind, from its lists and watches."""

    def __init__(self, *, expected: int = 0) -> None:
        self._versions: dict[str, _Packed] = {}
        self.expected = expected
        """The number of objects in an earlier run, until a list is accepted: the first list is compared with it."""

    def __len__(self) -> int:
        return len(self._versions)

    def apply(self, entries: Iterable[Entry[T]]) -> dict[str, T | Unreadable | None]:
        """Apply entries, oldest first; returns each key that is new, changed or deleted (None)."""
        changes: dict[str, T | Unreadable | None] = {}
        for key, version, value in entries:
            if value is None:
                if self._versions.pop(key, None) is not None:
                    changes[key] = None
            elif self._versions.get(key) != (packed := _pack(version)) or not version:
                self._versions[key] = packed
                changes[key] = value
        return changes

    def version_of(self, key: str) -> str | None:
        """The known version of an object; None without one."""
        packed = self._versions.get(key)
        return None if packed is None else str(packed)

    def relist(self) -> Relist[T]:
        """Start to read the whole collection again."""
        return Relist(self)

    def forget_versions(self) -> None:
        """Keep the objects; each counts as changed when it is seen next."""
        self._versions = dict.fromkeys(self._versions, "")

    def held(self) -> dict[str, _Packed]:
        """The known keys with their versions."""
        # A copy of the dict takes a fifth of the time of a set, and the garbage collector does not walk through it.
        return self._versions.copy()


class Relist(Generic[T]):
    """One read of the whole collection, page by page; discarded without effect if it is not completed."""

    def __init__(self, store: Store[T]) -> None:
        self._store = store
        self.held = max(len(store), store.expected)
        """About how many objects there should be."""
        self._unseen = store.held()

    def take(self, entries: list[Entry[T]]) -> dict[str, T | Unreadable | None]:
        """Apply one page; returns the new and changed objects."""
        for entry in entries:
            self._unseen.pop(entry.key, None)
        return self._store.apply(entries)

    @property
    def is_doubtful(self) -> bool:
        """Whether the complete list lost so many objects at once that it is probably wrong.

        API servers have sent empty lists while they started, were upgraded or lost their storage.
        """
        left = len(self._store) - len(self._unseen)
        return (left == 0 < self.held) or (self.held >= _FEW and left * _LITTLE_LEFT < self.held)

    def missing(self) -> Iterator[Entry[T]]:
        """The deletions that the list implies, once it is complete and accepted."""
        return (Entry(key, "", None) for key in self._unseen)
