"""The rows of the page from the JSON of `python -m tests.bench.faults`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from docs.speed.run import Row
from tests.bench.faults.outcome import SLOW, WELL, WELL_AGAIN
from tests.bench.kit.page_rows import make_row, spread_of

_FIGURES: Final = {
    "failed": ("Lookups of other names that failed", "names that dnsproxy does not have", "", 0.0),
    "slowest": ("The slowest lookup", "of all names", "s", SLOW),
    "well_after": (
        "Until all lookups are as fast as before",
        f"the last lookup over {WELL:g} s",
        "s",
        WELL_AGAIN,
    ),
}


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """One bar for each fault; no other program was measured."""
    rows = [row for row in content["rows"] if row["outcome"]]
    names = list(dict.fromkeys(_name(row) for row in content["rows"]))
    faults = {_name(row): row["trouble"] for row in content["rows"] if row["trouble"]}
    for figure, (title, about, unit, goal) in _FIGURES.items():
        rounds = {name: [float(row["outcome"][figure]) for row in rows if _name(row) == name] for name in names}
        yield from make_row(
            *("faults", figure),
            title=title,
            about=about,
            unit=unit,
            better="lower",
            found=[(name, spread_of(values)) for name, values in rounds.items()],
            rounds=content["rounds"],
            faults=faults,
            ours=names,
            goal=goal,
        )


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['fault']}, CoreDNS {row['coredns']}"
