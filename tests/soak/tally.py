"""What was asked of the server, and what came of it. Plain counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import Enum, StrEnum


class Kind(StrEnum):
    """What a question is."""

    TABLE = "names of the table"
    OUTSIDE = "names outside"
    STREAM = "over TCP"
    MALFORMED = "malformed"


class Result(Enum):
    """What came of it."""

    RIGHT = "right"
    FAILED = "failed"
    """An error that says so: SERVFAIL where no upstream answers, REFUSED over a cap."""
    WRONG = "wrong"
    LOST = "lost"


@dataclass
class Tally:
    """Counts of one run."""

    results: defaultdict[Kind, Counter[Result]] = field(default_factory=lambda: defaultdict(Counter))
    events: Counter[str] = field(default_factory=Counter)
    """What else took place, by name."""
    wrong: list[str] = field(default_factory=list)
    """The first wrong replies, in words."""

    def note(self, kind: Kind, result: Result, detail: str = "") -> None:
        self.results[kind][result] += 1
        if result is Result.WRONG and len(self.wrong) < _SHOWN:
            self.wrong.append(f"{kind}: {detail}")

    def count(self, result: Result) -> int:
        """Over all kinds of question."""
        return sum(results[result] for results in self.results.values())

    @property
    def asked(self) -> int:
        """Questions that have a result."""
        return sum(results.total() for results in self.results.values())


_SHOWN = 20
