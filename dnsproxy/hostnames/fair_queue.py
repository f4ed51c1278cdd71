"""A fair queue of hostnames: the namespaces take turns, so that many names of one delay no other.

The law: pure; each hostname once for each namespace. Within a namespace the newest comes first, because its user waits.
"""

from __future__ import annotations


class FairQueue:
    """Hostnames by namespace; at most `most` of each namespace."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: dict[str, dict[str, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def put(self, hostname: str, namespace: str) -> bool:
        """Queue a hostname as the newest of its namespace. Returns whether there was room."""
        names = self._rows.setdefault(namespace, {})
        if len(names) >= self._most and hostname not in names:
            return False
        names.pop(hostname, None)
        names[hostname] = None
        return True

    def take(self) -> str | None:
        """The newest hostname of the namespace whose turn it is; None if there is none."""
        if not self._rows:
            return None
        namespace = next(iter(self._rows))
        names = self._rows.pop(namespace)
        hostname = names.popitem()[0]
        if names:
            self._rows[namespace] = names
        return hostname
