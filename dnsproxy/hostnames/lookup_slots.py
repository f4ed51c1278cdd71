"""The slots of lookups that run side by side, and the share of a namespace in them.

The law: pure; a namespace has at most `each` slots, and takes no further one unless more are free than it has. So
however many of its lookups get no answer, the others find free slots; alone it has at most half of all. (Dynamic
thresholds: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.)
"""

from __future__ import annotations

from collections import Counter


class LookupSlots:
    """`most` slots in all."""

    def __init__(self, most: int, *, each: int) -> None:
        self.most = most
        self._each = each
        self._used: Counter[str] = Counter()

    @property
    def free(self) -> int:
        """How many slots are free."""
        return self.most - self._used.total()

    @property
    def full(self) -> frozenset[str]:
        """The namespaces that may take no slot now; one without a slot is never among them."""
        limit = min(self._each, self.free)
        return frozenset(namespace for namespace, used in self._used.items() if used >= limit)

    def take(self, namespace: str) -> None:
        """Use a slot."""
        self._used[namespace] += 1

    def give_back(self, namespace: str) -> None:
        """A lookup has ended."""
        self._used[namespace] -= 1
        if not self._used[namespace]:
            del self._used[namespace]
