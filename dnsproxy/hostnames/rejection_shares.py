"""The shares of rejections: how many are kept of one object and of one namespace.

The law: pure. A rejection changes no answer, so of too many the first that come are kept, and a namespace that is full
is known. A change costs what it touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dnsproxy.hostnames.claims import Rejection

PER_OBJECT: Final = 100
PER_NAMESPACE: Final = 1_000


class RejectionShares:
    """Counts the rejections that are kept, by namespace."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def bound(self, namespace: str, rejections: Sequence[Rejection], *, known: int) -> tuple[Rejection, ...]:
        """The rejections of an object to keep, in place of the `known` ones that it had; the last counts the others."""
        others = self._counts.get(namespace, 0) - known
        kept = tuple(rejections[: min(PER_OBJECT, PER_NAMESPACE - others)])
        if kept and len(kept) < len(rejections):
            more = len(rejections) - len(kept) + 1
            kept = (*kept[:-1], Rejection(rejections[0].origin, f"{more:,} more hostnames or settings are rejected"))
        if others + len(kept):
            self._counts[namespace] = others + len(kept)
        else:
            self._counts.pop(namespace, None)
        return kept

    def is_full(self, namespace: str) -> bool:
        """Whether rejections of this namespace may be missing."""
        return self._counts.get(namespace, 0) >= PER_NAMESPACE
