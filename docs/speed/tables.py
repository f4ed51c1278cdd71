"""The last run as tables of Markdown: in the guide, and in the README. Pure, but that it reads docs/speed.json.

The law: the figures of the README and of the guide are those of docs/speed.json; tests/docs/speed holds them to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from docs.speed.headlines import HEADLINES, IN_README, format_headline, headlines_of
from docs.speed.run import Row, Run, parse_run
from docs.speed.scale import format_ratio, format_value
from docs.tables import format_table

RECORDED: Final = Path(__file__).parents[1] / "speed.json"
README_ROWS: Final = 6
_HEAD: Final = ("work", "ours / theirs")
_AT_REST: Final = "dns-rest-"
_ADDED: Final = "relay-latency-"


def read_recorded() -> Run:
    """The last run that was recorded."""
    return parse_run(RECORDED.read_bytes())


def format_ratios(run: Run, prefix: str, *, without: str = "") -> str:
    """A line for each row whose id begins so, a column for each peer: ours divided by theirs.

    Rows whose id begins with `without` have no line.
    """
    rows = [
        row
        for row in _rows(run, prefix)
        if not (without and row.id.startswith(without)) and any(row.ratio(peer) is not None for peer in row.peers)
    ]
    peers = list(dict.fromkeys(peer for row in rows for peer in row.peers))
    return format_table(["ours / theirs", *peers], [_ratios(row, peers) for row in rows])


def _rows(run: Run, prefix: str) -> Iterator[Row]:
    return (row for row in run.rows if row.id.startswith(prefix))


def _ratios(row: Row, peers: list[str]) -> list[str]:
    words = "more is better" if row.better == "higher" else "less is better"
    ratios = {peer: row.ratio(peer) for peer in peers}
    return [f"{row.title} ({words})", *("" if ratio is None else format_ratio(ratio) for ratio in ratios.values())]


def format_times_of(run: Run, prefix: str) -> str:
    """A line for each row whose id begins so, a column for each program: its figure, and the ratio beside a peer's."""
    rows = list(_rows(run, prefix))
    if not rows:
        return "The last recorded run did not measure it."
    programs = list(dict.fromkeys(program for row in rows for program in row.figures))
    words = "less is better; in brackets ours / theirs"
    return format_table([words, *programs], [[_named(row), *(_time(row, one) for one in programs)] for row in rows])


def _named(row: Row) -> str:
    return f"{row.title} ({row.about})" if row.about else row.title


def _time(row: Row, program: str) -> str:
    figure, ratio = row.figures.get(program), row.ratio(program)
    if figure is None:
        return ""
    return f"{format_value(figure.median)} {row.unit}" + ("" if ratio is None else f" ({format_ratio(ratio)})")


def format_headlines(run: Run) -> str:
    """All headlines that the run has."""
    return _format_headlines({one.work: format_headline(found) for one, _, found in headlines_of(run)})


def format_readme(run: Run) -> str:
    """The README's table: as many rows whatever was measured, because the README has a length."""
    found = {one.work: format_headline(ratios) for one, _, ratios in headlines_of(run)}
    ranked = sorted(HEADLINES, key=lambda one: (one.work not in found, IN_README.index(one.row)))
    chosen = ranked[:README_ROWS]
    return _format_headlines({one.work: found.get(one.work, "not measured") for one in HEADLINES if one in chosen})


def _format_headlines(cells: Mapping[str, str]) -> str:
    return format_table(_HEAD, cells.items())


def update_readme(text: str, run: Run) -> str:
    """The README with the run's table in place of that before. Raises ValueError if it has none."""
    before, head, after = text.partition(format_table(_HEAD, ()) + "\n")
    if not head:
        raise ValueError("README.md has no table of speed")
    rows = itertools.takewhile(lambda line: line.startswith("|"), after.splitlines(keepends=True))
    return f"{before}{format_readme(run)}\n{after.removeprefix(''.join(rows))}"


PARTS: Final[Mapping[str, Callable[[Run], str]]] = {
    "answers": lambda run: format_ratios(run, "dns-", without=_AT_REST),
    "rest": lambda run: format_times_of(run, _AT_REST),
    "relay": lambda run: format_ratios(run, "relay-", without=_ADDED),
    "latency": lambda run: format_times_of(run, _ADDED),
    "headlines": format_headlines,
}
"""The generated parts of the guide: `*(make docs writes here: speed answers)*`."""
