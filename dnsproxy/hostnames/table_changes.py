"""The table's changes: which names each swap added, changed and removed, and the objects that they come from.

The law: the cost of a swap is constant per judged name, and the memory is one small value per name of the table, plus
the last 500 changes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.verdict import Verdict

MOST_CHANGES: Final = 500
"""Changes kept for the list."""
MOST_NAMES: Final = 10
"""Names in one log line."""
_MOST_ADDRESSES: Final = 8
"""Addresses kept of one change, before and after."""

What = Literal["added", "changed", "removed"]
_SIGNS: Final[dict[What, str]] = {"added": "+", "changed": "~", "removed": "-"}


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What the table has for one name."""

    origin: Origin
    addresses: tuple[str, ...]
    class_name: str | None

    def fits(self, host: Host, owner: Claim | None) -> bool:
        """Whether it is the answer of this judged row."""
        if owner is None or self.addresses != host.addresses:
            return False
        return self.origin == owner.origin and self.class_name == owner.terms.ingress_class


class TableChange(msgspec.Struct, frozen=True, gc=False):
    """One change of one name. The field names are keys of the JSON document."""

    time: float
    """Seconds since the epoch, when the name was judged."""
    hostname: str
    reach: Reach
    what: What
    origin: Origin
    """The object that has the name; of a removed name, the one that had it."""
    before: Answer | None
    after: Answer | None

    def __str__(self) -> str:
        return f"{_SIGNS[self.what]} {self.hostname} ({self.origin})"


def difference(before: Answer | None, after: Answer | None) -> What | None:
    """What happened to a name; None if nothing did."""
    if before == after:
        return None
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def answer_of(host: Host, verdict: Verdict) -> Answer | None:
    """The answer of a judged row; None if the row leaves the table."""
    if not host.addresses or verdict.owner is None:
        return None
    return Answer(verdict.owner.origin, host.addresses, verdict.owner.terms.ingress_class)


@dataclass(frozen=True, slots=True)
class SwapChanges:
    """What one swap changed."""

    counts: Mapping[What, int]
    """A name that changes twice within one swap counts twice."""
    first: Sequence[TableChange]
    """Up to MOST_NAMES of them."""

    @property
    def more(self) -> int:
        """How many `first` does not have."""
        return sum(self.counts.values()) - len(self.first)


class TableChanges:
    """A TableObserver that keeps the last changes; `on_swap` gets what each swap changed, if it changed anything."""

    def __init__(self, *, on_swap: Callable[[SwapChanges], None], now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._on_swap = on_swap
        self.version = 0
        """Another number after each swap that changed something."""
        self._answers: dict[Reach, dict[str, Answer]] = {reach: {} for reach in Reach}
        self._last: deque[TableChange] = deque(maxlen=MOST_CHANGES)
        self._counts: dict[What, int] = dict.fromkeys(_SIGNS, 0)
        self._first: list[TableChange] = []

    def newest_first(self) -> list[TableChange]:
        """The last changes."""
        return list(reversed(self._last))

    def judged(self, host: Host, verdict: Verdict) -> None:
        """See TableObserver."""
        answers = self._answers[host.reach]
        before = answers.get(host.hostname)
        if before is not None and before.fits(host, verdict.owner):
            return  # nearly every name when all are judged again: no value is made for it
        after = answer_of(host, verdict)
        what = difference(before, after)
        if what is None:
            return
        if after is None:
            del answers[host.hostname]
        else:
            answers[host.hostname] = after
        self._note(host, what, before, after)

    def begin_whole(self) -> None:
        """See TableObserver: every name is judged again, and is compared like any other."""

    def published(self, table: HostTable) -> None:
        """See TableObserver."""
        del table
        if self._first:
            self.version += 1
            self._on_swap(SwapChanges(self._counts, self._first))
            self._counts = dict.fromkeys(_SIGNS, 0)
            self._first = []

    def _note(self, host: Host, what: What, before: Answer | None, after: Answer | None) -> None:
        origin = (after or before).origin  # type: ignore[union-attr]  # a difference has one of them
        change = TableChange(self._now(), host.hostname, host.reach, what, origin, _short(before), _short(after))
        self._last.append(change)
        self._counts[what] += 1
        if len(self._first) < MOST_NAMES:
            self._first.append(change)


def _short(answer: Answer | None) -> Answer | None:
    """The answer with a bounded number of addresses."""
    if answer is None or len(answer.addresses) <= _MOST_ADDRESSES:
        return answer
    return Answer(answer.origin, answer.addresses[:_MOST_ADDRESSES], answer.class_name)
