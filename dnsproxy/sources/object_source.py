"""Object sources: what turns objects of some kinds into claims, for source_follower.py.

The law: pure; once settled, the claims depend only on the objects, never on the order of their changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ObjectSource(Protocol):
    """Feeds a claim sink with the claims of objects of one kind or more."""

    @property
    def is_settled(self) -> bool:
        """Whether the claims match the reported objects."""
        ...

    def change(self, kind: str, changes: Mapping[str, Any]) -> frozenset[str]:
        """Take in changes of objects of one kind, by `NAMESPACE/NAME`: an object, an Unreadable, or None.

        Returns the hostnames whose claims changed at once; what depends on other objects is left to settle().
        """
        ...

    def settle(self, limit: int) -> frozenset[str]:
        """Evaluate at most this many objects. Returns the hostnames whose claims changed."""
        ...
