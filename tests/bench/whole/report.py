"""A run as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from docs.speed.run import Figure, Row, Run
from docs.speed.scale import format_ratio, format_value
from tests.kit.grid import format_grid

_HEAD: Final = ("", "median", "(min-max)", "unit", "ours / theirs")


def format_run_as_text(run: Run) -> str:
    """A table for each benchmark, and what was not measured."""
    return "\n".join(
        text for bench in run.benches for text in _format_bench(run, bench.name, bench.title, bench.trouble)
    )


def _format_bench(run: Run, name: str, title: str, trouble: str) -> Iterator[str]:
    yield f"{title}\n"
    rows = [cells for row in run.rows_of(name) for cells in _format_row(row)]
    if rows:
        yield format_grid(_HEAD, rows, left=(0, 3))
    if trouble:
        yield f"not measured, or not wholly: {trouble}\n"


def _format_row(row: Row) -> Iterator[tuple[str, ...]]:
    yield (f"{row.title} ({'more' if row.better == 'higher' else 'less'} is better)", "", "", "", "")
    for program, figure in row.figures.items():
        ratio = row.ratio(program)
        yield (
            f"  {program}",
            format_value(figure.median),
            _format_spread(figure),
            row.unit,
            "" if ratio is None else format_ratio(ratio),
        )
    for program, why in row.faults.items():
        yield (f"  {program}: not measured: {why}", "", "", "", "")


def _format_spread(figure: Figure) -> str:
    return f"({format_value(figure.low)}-{format_value(figure.high)})" if figure.low != figure.high else ""
