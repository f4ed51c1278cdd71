"""The rows of the page from the JSON of `python -m tests.bench.doctor`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from docs.speed.run import Row
from tests.bench.doctor.commands import COMMANDS
from tests.bench.doctor.report import RESIDENT, TIME
from tests.bench.kit.page_rows import make_row, shared_goal

_SHOWN: Final = {TIME: ("Time of a command", "s"), RESIDENT: ("Peak memory of a command", "MiB")}
_ABOUT: Final = {one.name: one.about for one in COMMANDS}


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """One bar for each command; no other program has a comparable one."""
    size = f"{content['ingresses']:,} Ingresses, {content['services']:,} Services, {content['nodes']:,} nodes"
    for what, (title, unit) in _SHOWN.items():
        rows = [row for row in content["rows"] if row["what"] == what]
        named = [(_name(row), row) for row in rows]
        yield from make_row(
            *("doctor", what),
            title=title,
            about=size,
            unit=unit,
            better="lower",
            found=[(name, row["figure"]) for name, row in named],
            rounds=content["rounds"],
            faults={_name(row): row["fault"] for row in content["rows"] if row["fault"]},
            ours=[name for name, _ in named],
            goal=shared_goal(rows),
        )


def _name(row: Mapping[str, Any]) -> str:
    # On a phone a line has room for 35 letters.
    about = _ABOUT[row["command"]].partition(",")[0]
    return f"{about} ({row['way']})" if row["way"] else about
