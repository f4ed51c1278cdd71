"""The outcomes of judging: the rows with excluded claims, with an unverified one, or without an address, for pages.

The law: pure. Each row is as of its last verdict, because judging all claims for a page would delay DNS; a row whose
claim is simply answered takes no memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.verdict import Excluded, Unverified, Verdict

Row = tuple[str, Reach]
"""A hostname and the reach of the claims to it."""

MOST_FRESH: Final = 5_000
"""Judgements remembered for readers that keep something of all names; beyond, a reader has to look at all of them."""


class Outcomes:
    """What the last verdict on each row left to report."""

    def __init__(self) -> None:
        self.judged = 0
        """Increases with every row that is judged again; while it stays, so do the excluded and unverified claims."""
        self._excluded: dict[Row, tuple[Excluded, ...]] = {}
        self._unverified: dict[Row, Unverified] = {}
        self._waiting: dict[Row, None] = {}
        self._fresh: deque[str] = deque(maxlen=MOST_FRESH)

    def note(self, row: Row, verdict: Verdict) -> None:
        """Replace the outcome of a row; constant time."""
        self.judged += 1
        self._fresh.append(row[0])
        if verdict.excluded:
            self._excluded[row] = verdict.excluded
        else:
            self._excluded.pop(row, None)
        if verdict.waits:
            self._waiting[row] = None
        else:
            self._waiting.pop(row, None)
        if verdict.winner is not None and verdict.doubt:
            self._unverified[row] = Unverified(verdict.winner, verdict.doubt)
        else:
            self._unverified.pop(row, None)

    def judged_since(self, number: int) -> set[str] | None:
        """The hostnames judged since `judged` was this number; None if they are too many to tell."""
        fresh = self.judged - number
        return set(islice(reversed(self._fresh), fresh)) if fresh <= len(self._fresh) else None

    def excluded(self) -> list[Excluded]:
        """Every excluded claim."""
        return list(chain.from_iterable(self._excluded.values()))

    def unverified(self) -> list[Unverified]:
        """The claims that are answered though their public record points elsewhere."""
        return list(self._unverified.values())

    def excluded_rows(self) -> list[Row]:
        """A copy of the rows with excluded claims, to iterate with excluded_at while they change."""
        return list(self._excluded)

    def excluded_rows_now(self) -> Iterator[Row]:
        """The same without a copy; a change during the iteration raises RuntimeError."""
        return iter(self._excluded)

    def excluded_at(self, row: Row) -> tuple[Excluded, ...]:
        """The excluded claims of a row."""
        return self._excluded.get(row, ())

    def unverified_rows(self) -> list[Row]:
        """Like excluded_rows, for unverified claims."""
        return list(self._unverified)

    def unverified_rows_now(self) -> Iterator[Row]:
        """Like excluded_rows_now, for unverified claims."""
        return iter(self._unverified)

    def unverified_at(self, row: Row) -> Unverified | None:
        """The unverified claim of a row."""
        return self._unverified.get(row)

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows have excluded claims, and how many an unverified one."""
        return len(self._excluded), len(self._unverified)

    @property
    def waiting(self) -> int:
        """How many hostnames are forwarded because their target has no address, or no ready endpoint."""
        return len(self._waiting)
