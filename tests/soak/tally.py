"""The questions to the server by kind, and their results. Only counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import Enum, StrEnum


class Kind(StrEnum):
    """The kind of a question."""

    TABLE = "names of the table"
    OUTSIDE = "names outside"
    STREAM = "over TCP"
    MALFORMED = "malformed"


class Result(Enum):
    """The result of a question."""

    RIGHT = "right"
    FAILED = "failed"
    """An honest error: SERVFAIL if no upstream answers, REFUSED over a limit."""
    WRONG = "wrong"
    LOST = "lost"


@dataclass
class Tally:
    """Counts of one run."""

    results: defaultdict[Kind, Counter[Result]] = field(default_factory=lambda: defaultdict(Counter))
    events: Counter[str] = field(default_factory=Counter)
    """Other events, by name."""
    wrong: list[str] = field(default_factory=list)
    """The first wrong replies, with their faults."""

    def note(self, kind: Kind, result: Result, detail: str = "") -> None:
        self.results[kind][result] += 1
        if result is Result.WRONG and len(self.wrong) < _SHOWN:
            self.wrong.append(f"{kind}: {detail}")

    def count(self, result: Result) -> int:
        """The sum over all kinds of question."""
        return sum(results[result] for results in self.results.values())

    @property
    def asked(self) -> int:
        """Questions that have a result."""
        return sum(results.total() for results in self.results.values())


_SHOWN = 20
