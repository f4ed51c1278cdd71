"""The table at the end, and the same as JSON. Pure.

The law: a row a round, whatever it says; what was not measured says why in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.bench.faults.outcome import SLOW, WELL, WELL_AGAIN, Outcome
from tests.kit.grid import format_grid

HEAD: Final = (
    *(
        "CoreDNS",
        "dnsproxy",
        "lookups",
        "failed outside",
        "in table",
        "dropped",
        "tries",
        f"> {SLOW:g} s",
        f"> {WELL:g} s",
    ),
    *("median ms", "slowest s", "well after s", "ours after s", "CoreDNS MB", "reached"),
)
_WORDS: Final = (0, 1)

NOTE: Final = f"""\
Goal: no lookup outside the table fails, none takes over {SLOW:g} s, all are as ever {WELL_AGAIN:g} s after the fault.
failed: no address came, outside the table and for its names. dropped: datagrams that the kernel of CoreDNS's pod threw
away because nobody read them in time: then it is tried again, up to three times, and the try with the fewest counts;
where there are any still, the machine was too busy. well after: from the fault to the
last lookup under it that failed or took over {WELL:g} s. ours after: from the end of the fault to the last lookup of a
name of the table that brought another answer than ours. MB: the most memory that CoreDNS had.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One round."""

    coredns: str
    fault: str
    outcome: Outcome | None
    resident_mb: float = 0.0
    dropped: int = 0
    tries: int = 1
    trouble: str = ""
    """Why it was not measured."""

    @property
    def reached(self) -> bool | None:
        """Whether every goal is; None where nothing was measured."""
        return None if self.outcome is None else self.outcome.reached


def format_table(rows: Sequence[Row]) -> str:
    """Lines of text."""
    troubles = "".join(f"{row.coredns}, {row.fault}: not measured: {row.trouble}\n" for row in rows if row.trouble)
    return format_grid(HEAD, [_cells(row) for row in rows], left=_WORDS) + "\n" + NOTE + troubles + _format_failed(rows)


def _cells(row: Row) -> tuple[str, ...]:
    outcome = row.outcome
    if outcome is None:
        return (row.coredns, row.fault, "not measured", *[""] * (len(HEAD) - 3))
    return (
        *(row.coredns, row.fault, f"{outcome.outside + outcome.in_table:,}"),
        *(f"{outcome.failed:,}", f"{outcome.failed_in_table:,}", f"{row.dropped:,}", f"{row.tries}"),
        *(f"{outcome.slow:,}", f"{outcome.waited:,}", f"{outcome.median * 1000:.2f}"),
        *(f"{outcome.slowest:.2f}", f"{outcome.well_after:.2f}", f"{outcome.ours_after:.2f}"),
        *(f"{row.resident_mb:.0f}", "yes" if outcome.reached else "NO"),
    )


def _format_failed(rows: Sequence[Row]) -> str:
    """What came instead of an address."""
    lines = []
    for row in rows:
        if row.outcome is not None and row.outcome.said:
            said = ", ".join(f"{count:,} x {text}" for text, count in row.outcome.said.items())
            lines.append(f"{row.coredns}, {row.fault}: failed with {said}\n")
    return "".join(lines)


def to_json(rows: Sequence[Row], **head: Any) -> dict[str, Any]:
    """What is written to a file: how it was measured, and every figure."""
    return {**head, "rows": [{**asdict(row), "reached": row.reached} for row in rows]}
