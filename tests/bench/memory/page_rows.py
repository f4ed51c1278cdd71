"""The rows of the page from the JSON of `python -m tests.bench.memory`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from docs.speed.run import Row
from tests.bench.kit.page_rows import make_row
from tests.bench.memory.report import CPU, RESIDENT

_SHOWN: Final = {RESIDENT: ("Memory at rest", "MB"), CPU: ("Processor time to the first answer", "s")}


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """One bar for each command; no other program has a comparable one."""
    for what, (title, unit) in _SHOWN.items():
        rows = [row for row in content["rows"] if row["what"] == what]
        yield from make_row(
            *("memory", what),
            title=title,
            about="One name, one route or one Service",
            unit=unit,
            better="lower",
            found=[(row["command"], row["figure"]) for row in rows],
            rounds=content["rounds"],
            faults={row["command"]: row["fault"] for row in content["rows"] if row["fault"]},
            ours=[row["command"] for row in rows],
        )
