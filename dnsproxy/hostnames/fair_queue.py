"""A fair queue of hostnames: the namespaces take turns, so that many names of one delay no other.

The law: pure; each hostname once for each namespace. Of new hostnames of a namespace the newest comes first, because
its user waits; of those that are looked up again the oldest, so that each has its turn.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple


class Turn(NamedTuple):
    """A hostname, and the namespace in whose turn it comes."""

    hostname: str
    namespace: str


class FairQueue:
    """Hostnames by namespace; at most `most` of each namespace, the newest or the oldest first."""

    def __init__(self, most: int, *, newest_first: bool = True) -> None:
        self._most = most
        self._newest_first = newest_first
        self._rows: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def put(self, hostname: str, namespace: str) -> bool:
        """Queue a hostname. Returns whether there was room."""
        names = self._rows.setdefault(namespace, {})
        if len(names) >= self._most and hostname not in names:
            return False
        if self._newest_first:
            names.pop(hostname, None)
        names[hostname] = None
        return True

    def discard(self, hostname: str) -> None:
        """Remove a hostname from the queues of all namespaces."""
        for namespace in [one for one, names in self._rows.items() if hostname in names]:
            names = self._rows[namespace]
            del names[hostname]
            if not names:
                del self._rows[namespace]

    def has_turn(self, full: Container[str] = ()) -> bool:
        """Whether take() has a hostname."""
        return self._next(full) is not None

    def take(self, full: Container[str] = ()) -> Turn | None:
        """The next hostname of the namespace whose turn it is; None if there is none. Namespaces in `full` wait."""
        namespace = self._next(full)
        if namespace is None:
            return None
        names = self._rows.pop(namespace)
        hostname = next(reversed(names) if self._newest_first else iter(names))
        del names[hostname]
        if names:
            self._rows[namespace] = names
        return Turn(hostname, namespace)

    def _next(self, full: Container[str]) -> str | None:
        return next((namespace for namespace in self._rows if namespace not in full), None)
