"""The table's changes: which names each swap added, changed and removed, and the objects that they come from.

The law: the cost of a swap is constant per judged name, and the memory is one reference per name of the table, to the
claim that has it, plus the last 500 changes.
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


def answer_by(owner: Claim | None, addresses: tuple[str, ...]) -> Answer | None:
    """The answer by a claim; None without one."""
    return Answer(owner.origin, addresses, owner.terms.ingress_class) if owner is not None else None


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
        self._owners: dict[Reach, dict[str, Claim]] = {reach: {} for reach in Reach}
        self._last: deque[TableChange] = deque(maxlen=MOST_CHANGES)
        self._counts: dict[What, int] = dict.fromkeys(_SIGNS, 0)
        self._first: list[TableChange] = []

    def newest_first(self) -> list[TableChange]:
        """The last changes."""
        return list(reversed(self._last))

    def judged(self, host: Host, verdict: Verdict, *, before: tuple[str, ...]) -> None:
        """See TableObserver."""
        owners = self._owners[host.reach]
        former, owner = owners.get(host.hostname), verdict.owner if host.addresses else None
        if former == owner and before == host.addresses:
            return  # nearly every name when all are judged again: no value is made for it
        if owner is None:
            owners.pop(host.hostname, None)
        elif former != owner:
            # An equal one stays: a replica reads another one of its row each time, and its store keeps the first.
            owners[host.hostname] = owner
        then, now = answer_by(former, before), answer_by(owner, host.addresses)
        what = difference(then, now)
        if what is not None:
            self._note(host, what, then, now)

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
