"""What one round says: failed and slow lookups, and when all was well again. Pure.

The law: a question counts by the moment at which it was asked. The goals are those of reliability case I6, and are
about names outside the table: whoever is not ours must not notice us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.faults.asking import Asked
from tests.bench.kit.figures import percentile

SLOW: Final = 2.5
"""Seconds that no lookup may take: CoreDNS waits two for one server before it asks the next."""
WELL: Final = 0.5
"""Seconds within which a lookup is as it always was; a busy machine may take some of them."""
WELL_AGAIN: Final = 5.0
"""Seconds after the fault by which all are."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts and seconds of one round."""

    outside: int
    """Lookups of names outside the table."""
    failed: int
    """Of those, without an address."""
    slow: int
    """Of all names, over SLOW."""
    waited: int
    """Of all names, over WELL."""
    in_table: int
    failed_in_table: int
    median: float
    slowest: float
    well_after: float
    """From the fault to the last lookup under it that failed or took more than WELL; 0 where none did."""
    ours_after: float
    """From the end of the fault to the last lookup of a name in the table that did not bring our answer."""
    said: dict[str, int]
    """What the failed ones brought, and how often."""

    @property
    def reached(self) -> bool:
        """Whether every goal is."""
        return self.failed == 0 and self.slow == 0 and self.well_after <= WELL_AGAIN


def judge(asked: Sequence[Asked], *, begun: float, ended: float, ours: str) -> Outcome:
    """The outcome of a fault that lasted from one moment to another; `ours` is the address of names in the table."""
    outside = [one for one in asked if not one.in_table]
    inside = [one for one in asked if one.in_table]
    failed = [one for one in asked if not one.answered]
    during = [one for one in asked if begun <= one.at < ended]
    after = [one for one in inside if one.at >= ended]
    said = [one.said for one in failed]
    return Outcome(
        outside=len(outside),
        failed=sum(not one.answered for one in outside),
        slow=sum(one.seconds > SLOW for one in asked),
        waited=sum(one.seconds > WELL for one in asked),
        in_table=len(inside),
        failed_in_table=sum(not one.answered for one in inside),
        median=percentile([one.seconds for one in asked], 0.5) or 0.0,
        slowest=max((one.seconds for one in asked), default=0.0),
        well_after=_last(during, lambda one: not one.answered or one.seconds > WELL, since=begun),
        ours_after=_last(after, lambda one: one.said != ours, since=ended),
        said={each: said.count(each) for each in sorted(set(said))},
    )


def _last(asked: Iterable[Asked], is_bad: Callable[[Asked], bool], *, since: float) -> float:
    return max((one.at - since for one in asked if is_bad(one)), default=0.0)
