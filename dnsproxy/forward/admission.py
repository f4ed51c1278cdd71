"""Admission: how many queries may wait for an upstream, in all and for one client.

The law: a count, never a queue. What is not admitted is refused at once, which no cache keeps; a client that gathers
replies for one pulse (DNSBomb, CVE-2024-33655) gathers no more than its share.
"""

from __future__ import annotations

from collections.abc import Hashable


class Admission:
    """Counts the queries that wait."""

    def __init__(self, *, total: int, per_client: int) -> None:
        self._total = total
        self._per_client = per_client
        self._waiting = 0
        self._clients: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return self._waiting

    def admit(self, client: Hashable) -> bool:
        """Count one more query of a client, unless that is too much."""
        clients = self._clients
        waiting = clients.get(client, 0)
        if waiting >= self._per_client or self._waiting >= self._total:
            return False
        clients[client] = waiting + 1
        self._waiting += 1
        return True

    def release(self, client: Hashable) -> None:
        """One query of an admitted client no longer waits."""
        self._waiting -= 1
        left = self._clients[client] - 1
        if left:
            self._clients[client] = left
        else:
            del self._clients[client]
