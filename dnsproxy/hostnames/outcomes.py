"""The outcomes of judging: the rows with excluded claims or without an address, and the names that lead elsewhere.

The law: pure. Each row is as of its last verdict, because judging all claims for a page would delay DNS; a row whose
claim is simply answered takes no memory, unless it is a wildcard that covers a whole domain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import chain, islice
from typing import Final

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.public_addresses import AddressTally, UnknownAddress
from dnsproxy.hostnames.registrable import covered_domain
from dnsproxy.hostnames.verdict import Excluded, LedElsewhere, Verdict

Row = tuple[str, Reach]
"""A hostname and the reach of the claims to it."""

MOST_FRESH: Final = 5_000
"""Judgements remembered for readers that keep something of all names; beyond, a reader has to look at all of them."""
MOST_WIDE: Final = 10
"""Wildcards that are named because each covers a whole domain."""


class Outcomes:
    """What the last verdict on each row left to report."""

    def __init__(self) -> None:
        self.judged = 0
        """Increases with every row that is judged again; while it stays, so do the excluded claims."""
        self.led = 0
        """Increases with every change of the names that lead elsewhere."""
        self.unknown_addresses: tuple[UnknownAddress, ...] = ()
        """Where many of the claimed names lead that were asked lately, if no status names it."""
        self._tally = AddressTally()
        self._wide: dict[Row, Claim] = {}
        self._first_wide: tuple[Claim, ...] | None = ()
        """None: to be found anew."""
        self._excluded: dict[Row, tuple[Excluded, ...]] = {}
        self._elsewhere: dict[Row, LedElsewhere] = {}
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
        if row[1] is not Reach.NAME:
            self._note_wide(row, verdict.winner)

    def _note_wide(self, row: Row, claim: Claim | None) -> None:
        is_wide = claim is not None and not claim.terms.addresses and covered_domain(row[0]) != ""
        after = claim if is_wide else None
        if after == self._wide.get(row):
            return
        self._first_wide = None
        if after is None:
            del self._wide[row]
        else:
            self._wide[row] = after

    def set_elsewhere(self, found: Iterable[LedElsewhere], tally: AddressTally | None = None) -> None:
        """Replace the names that lead elsewhere; `tally` has counted them by address."""
        self.led += 1
        self._elsewhere = {(one.hostname, Reach.NAME): one for one in found}
        self._tally = tally or AddressTally()

    def set_asked(self, asked: int) -> None:
        """Say how many claimed names were asked lately."""
        self.unknown_addresses = self._tally.find_unknown(asked)

    def wide(self) -> tuple[Claim, ...]:
        """The claims that have wildcards that cover whole domains: the first ones, in the order of the alphabet."""
        if self._first_wide is None:
            first = nsmallest(2 * MOST_WIDE, self._wide.items(), key=lambda item: (item[0][0], item[0][1].value))
            # One hostname may be claimed in two reaches.
            by_name = {hostname: claim for (hostname, _), claim in reversed(first)}
            self._first_wide = tuple(by_name[hostname] for hostname in sorted(by_name)[:MOST_WIDE])
        return self._first_wide

    def judged_since(self, number: int) -> set[str] | None:
        """The hostnames judged since `judged` was this number; None if they are too many to tell."""
        fresh = self.judged - number
        return set(islice(reversed(self._fresh), fresh)) if fresh <= len(self._fresh) else None

    def excluded(self) -> list[Excluded]:
        """Every excluded claim."""
        return list(chain.from_iterable(self._excluded.values()))

    def elsewhere(self) -> list[LedElsewhere]:
        """The claimed names that were asked lately and lead elsewhere."""
        return list(self._elsewhere.values())

    def excluded_rows(self) -> list[Row]:
        """A copy of the rows with excluded claims, to iterate with excluded_at while they change."""
        return list(self._excluded)

    def excluded_rows_now(self) -> Iterator[Row]:
        """The same without a copy; a change during the iteration raises RuntimeError."""
        return iter(self._excluded)

    def excluded_at(self, row: Row) -> tuple[Excluded, ...]:
        """The excluded claims of a row."""
        return self._excluded.get(row, ())

    def elsewhere_rows(self) -> list[Row]:
        """Like excluded_rows, for names that lead elsewhere."""
        return list(self._elsewhere)

    def elsewhere_rows_now(self) -> Iterator[Row]:
        """Like excluded_rows_now, for names that lead elsewhere."""
        return iter(self._elsewhere)

    def elsewhere_at(self, row: Row) -> LedElsewhere | None:
        """Where a name leads; None if it leads here, or was not asked."""
        return self._elsewhere.get(row)

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows have excluded claims, and how many names lead elsewhere."""
        return len(self._excluded), len(self._elsewhere)

    @property
    def waiting(self) -> int:
        """How many hostnames are forwarded because their target has no address, or no ready endpoint."""
        return len(self._waiting)
