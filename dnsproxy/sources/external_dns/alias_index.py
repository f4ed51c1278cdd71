"""The index of aliases: which objects each name affects, and how many aliases of a namespace claim nothing.

The law: pure; an entry exists exactly as long as the object that caused it. A change costs what it touches.
Tested in test_dns_endpoint_source.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from dnsproxy.dns.names import is_wildcard
from dnsproxy.hostnames.wildcards import wider

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")

MOST_UNCLAIMED: Final = 10_000
"""Aliases of one namespace that claim nothing and are kept: the share of names (name_shares.py) counts only claims."""
_MOST_LABELS: Final = 10
"""Below the star of a wildcard: with more, it has the entry of the wider one with so many. A name may have 127 labels,
and each of the wildcards above it would take half a kilobyte."""

_Age = tuple[str, str]
"""The creation and key of an object."""


class AliasIndex:
    """By object, `NAMESPACE/NAME`."""

    def __init__(self) -> None:
        self._aliases: dict[tuple[str, str], dict[_Age, str]] = {}
        """By namespace and hostname."""
        self._own: dict[str, tuple[str, Mapping[str, str]]] = {}
        """By object: its creation and its aliases."""
        self._watchers: dict[str, dict[str, None]] = {}
        """The objects that each name affects, and each wildcard above it."""
        self._watched: dict[str, frozenset[str]] = {}
        self._unclaimed: dict[str, int] = {}
        """By object: how many of its aliases claim nothing."""
        self._totals: dict[str, int] = {}
        """By namespace."""

    @property
    def is_empty(self) -> bool:
        """Whether no trace of any object is left."""
        indices = (self._aliases, self._own, self._watchers, self._watched, self._unclaimed, self._totals)
        return not any(indices)

    @property
    def watched(self) -> int:
        """The number of names and wildcards that affect any object."""
        return len(self._watchers)

    def put(self, key: str, created: str, aliases: Mapping[str, str]) -> set[str]:
        """Set what the names of an object stand for. Returns the names of which that has changed."""
        namespace = key.partition("/")[0]
        before, old = self._own.pop(key, ("", {}))
        for name in old:
            _discard(self._aliases, (namespace, name), (before, key))
        if aliases:
            self._own[key] = created, aliases
        for name, alias in aliases.items():
            self._aliases.setdefault((namespace, name), {})[created, key] = alias
        return {name for name in {*old, *aliases} if (before, old.get(name)) != (created, aliases.get(name))}

    def alias_of(self, key: str, hostname: str) -> str | None:
        """What an object says that a hostname stands for."""
        return self._own.get(key, ("", {}))[1].get(hostname)

    def own(self, namespace: str, hostname: str) -> str | None:
        """What a name stands for in a namespace: by its oldest object, and the narrowest wildcard above the name."""
        name = self.own_name(namespace, hostname)
        found = self._aliases[namespace, name] if name is not None else {}
        return found[min(found)] if found else None

    def own_name(self, namespace: str, hostname: str) -> str | None:
        """The name of that alias: the hostname itself, or the wildcard."""
        return next((name for name in (hostname, *wider(hostname)) if (namespace, name) in self._aliases), None)

    def watch(self, key: str, names: Iterable[str]) -> None:
        """Set the names that affect an object."""
        watched = frozenset(one for name in dict.fromkeys(names) for one in (name, *_wildcards_above(name)))
        _exchange(self._watchers, key, self._watched.pop(key, frozenset()), watched)
        if watched:
            self._watched[key] = watched

    def watchers(self, name: str) -> Collection[str]:
        """The objects that a change of a name or wildcard may affect: all of them, and with many labels others too."""
        return self._watchers.get(_key_of(name), {}).keys()

    def note_unclaimed(self, key: str, number: int) -> int:
        """Set how many aliases of an object claim nothing. Returns how many of them may be kept."""
        namespace = key.partition("/")[0]
        others = self._totals.pop(namespace, 0) - self._unclaimed.pop(key, 0)
        kept = min(number, MOST_UNCLAIMED - others)
        if kept:
            self._unclaimed[key] = kept
        if others + kept:
            self._totals[namespace] = others + kept
        return kept


def _wildcards_above(name: str) -> Iterator[str]:
    labels = name.split(".")
    for number in range(1, min(len(labels), _MOST_LABELS + 1)):
        yield f"*.{'.'.join(labels[-number:])}"


def _key_of(name: str) -> str:
    """Where a name or wildcard is in the index."""
    labels = name.removeprefix("*.").split(".")
    return f"*.{'.'.join(labels[-_MOST_LABELS:])}" if is_wildcard(name) and len(labels) > _MOST_LABELS else name


def _exchange(index: dict[str, dict[str, None]], key: str, old: frozenset[str], new: frozenset[str]) -> None:
    for name in old - new:
        _discard(index, name, key)
    for name in new - old:
        index.setdefault(name, {})[key] = None


def _discard(index: dict[K, dict[T, V]], name: K, key: T) -> None:
    entries = index[name]
    del entries[key]
    if not entries:
        del index[name]
