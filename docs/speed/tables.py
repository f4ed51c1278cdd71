"""The last run as tables of Markdown: in the guide, and in the README. Pure, but that it reads docs/speed.json.

The law: the figures of the README and of the guide are those of docs/speed.json; tests/docs/speed holds them to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.speed.headlines import HEADLINES, format_headline, headlines_of
from docs.speed.run import Row, Run, parse_run
from docs.speed.scale import format_ratio
from docs.tables import format_table

RECORDED: Final = Path(__file__).parents[1] / "speed.json"


def read_recorded() -> Run:
    """The last run that was recorded."""
    return parse_run(RECORDED.read_bytes())


def format_ratios(run: Run, prefix: str) -> str:
    """A line for each row whose id begins so, a column for each peer: ours divided by theirs."""
    rows = [row for row in run.rows if row.id.startswith(prefix) and any(row.ratio(peer) for peer in row.peers)]
    peers = list(dict.fromkeys(peer for row in rows for peer in row.peers))
    return format_table(["ours / theirs", *peers], [_ratios(row, peers) for row in rows])


def _ratios(row: Row, peers: list[str]) -> list[str]:
    words = "more is better" if row.better == "higher" else "less is better"
    ratios = {peer: row.ratio(peer) for peer in peers}
    return [f"{row.title} ({words})", *("" if ratio is None else format_ratio(ratio) for ratio in ratios.values())]


def format_headlines(run: Run) -> str:
    """The README's table."""
    return format_table(
        ["work", "ours / theirs"], [[one.work, format_headline(found)] for one, _, found in headlines_of(run)]
    )


def update_readme(text: str, run: Run) -> str:
    """The README with the rows that the run has in place of those before; other rows stay."""
    rows = dict(_row_of(line) for line in format_headlines(run).splitlines()[2:])
    works = {one.work for one in HEADLINES}
    lines = []
    for line in text.splitlines():
        work = _row_of(line)[0]
        lines += [rows[work]] if work in rows else ([] if work in works else [line])
    return "\n".join([*lines, ""])


def _row_of(line: str) -> tuple[str, str]:
    return line.removeprefix("| ").partition(" | ")[0], line


PARTS: Final[Mapping[str, Callable[[Run], str]]] = {
    "answers": lambda run: format_ratios(run, "dns-"),
    "relay": lambda run: format_ratios(run, "relay-"),
    "headlines": format_headlines,
}
"""The generated parts of the guide: `<!-- generated: speed answers -->`."""
