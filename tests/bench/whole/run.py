"""All parts, one after the other, within a time.

The law: each part is a process of its own; if it fails or hangs, the other parts are still measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from docs.speed.run import Bench, Row
from tests.bench.kit.page_rows import OURS
from tests.bench.whole.part import Part
from tests.bench.whole.plan import choose_rounds, slowness
from tests.bench.whole.process import run_command

_PATIENCE: Final = 2.5
"""Times its estimate that a part may take."""
_SPARE_SECONDS: Final = 90.0
_QUICK_SECONDS: Final = 240.0

Tell = Callable[[str, float], None]
"""What runs now, and how many seconds the whole still takes."""


@dataclass(slots=True)
class Found:
    """What the parts found."""

    benches: list[Bench] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    @property
    def has_failed(self) -> bool:
        """Whether a part failed that could have been measured."""
        return any(one.failed for one in self.benches)


def run_parts(
    parts: Sequence[Part], *, seconds: float, quick: bool, folder: Path, tell: Tell, whole: bool = False
) -> Found:
    """Everything; raw figures and logs of each part are left in `folder`.

    Without time for the least rounds of a part it is not measured; with `whole` it is, and all take longer.
    """
    found = Found()
    begun, planned, spent = time.monotonic(), 0.0, 0.0
    for number, part in enumerate(parts):
        slow = slowness(planned, spent)
        left = seconds - (time.monotonic() - begun)
        waiting = {one.name: one.cost for one in parts[number:] if not one.obstacle()}
        rounds = choose_rounds(waiting, left / slow).get(part.name, 0)
        if quick:
            rounds = min(rounds, 1)
        has_time = quick or whole or part.cost.seconds(rounds) * slow <= left
        obstacle = part.obstacle() or ("" if has_time else _no_time(left))
        if obstacle:
            tell(f"{part.name}: not measured: {obstacle}", left)
            found.benches.append(Bench(part.name, part.title, part.about, trouble=obstacle))
            continue
        estimate = _QUICK_SECONDS if quick else part.cost.seconds(rounds) * slow
        bench, rows = _run(
            part, rounds, quick=quick, limit=estimate * _PATIENCE + _SPARE_SECONDS, folder=folder, tell=tell, left=left
        )
        found.benches.append(bench)
        found.rows += rows
        if not bench.failed:
            # How long a part ran that hung or ended early says nothing about the machine.
            planned += part.cost.seconds(rounds)
            spent += bench.seconds
    return found


def _no_time(left: float) -> str:
    return f"no time for it: {max(0.0, left) / 60:.1f} minutes were left"


def _run(
    part: Part, rounds: int, *, quick: bool, limit: float, folder: Path, tell: Tell, left: float
) -> tuple[Bench, list[Row]]:
    """One part. Its fault ends it alone."""
    figures = folder / f"{part.name}.json"
    figures.unlink(missing_ok=True)
    command = [sys.executable, *part.command(rounds, quick=quick), "--json", str(figures)]
    begun = time.monotonic()

    def report(line: str) -> None:
        tell(f"{part.name}: {line}", left - (time.monotonic() - begun))

    trouble = run_command(command, folder / f"{part.name}.log", limit=limit, report=report)
    bench = Bench(part.name, part.title, part.about, round(time.monotonic() - begun, 1), rounds)
    try:
        content = json.loads(figures.read_text())
        rows = read_rows(part, content)
        lost = "; ".join([*part.faults(content), *_lost(rows)])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return replace(bench, trouble=trouble or f"its figures cannot be read: {error!r}", failed=True), []
    trouble = trouble or lost
    return replace(bench, trouble=trouble, failed=bool(trouble)), rows


def _lost(rows: Sequence[Row]) -> Iterator[str]:
    """Why figures of ours are missing, each reason once. A peer without a figure is named in its row alone."""
    titles = {row.faults[OURS]: row.title for row in reversed(rows) if OURS in row.faults}
    return (f"{title}: {reason}" for reason, title in titles.items())


def read_rows(part: Part, content: Mapping[str, Any]) -> list[Row]:
    """The rows of a part from its JSON. Raises KeyError, TypeError and ValueError for another form."""
    return [replace(row, bench=part.name) for row in part.read(content)]
