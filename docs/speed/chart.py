"""A row as a bar chart: plain SVG with lengths in percent and letters in pixels, so it fits a phone unscaled. Pure.

The law: a bar begins at zero and ends at the median; the line over it goes from the lowest round to the highest. Every
figure stands beside its bar in digits, and all of them again in a table.

No library of charts: those for Python are large, and their SVG scales letters with the width or needs a script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from docs.speed.run import Figure, Row
from docs.speed.scale import Scale, format_ratio, format_tick, format_times, format_value, make_scale

_ITEM: Final = 38
"""Pixels of a program: a line of text, and its bar."""
_TEXT: Final = 13
_BAR_TOP: Final = 18
_BAR: Final = 13
_AXIS: Final = 24
_PLOT: Final = "76%"
"""Of the width: the rest is for the figure beside the longest bar."""
_WORDS: Final = {"higher": "longer is better", "lower": "shorter is better"}


def format_chart(row: Row) -> str:
    """A figure of HTML."""
    return "\n".join(
        [
            f'<figure class="chart" id="{escape(row.id)}">',
            f"<figcaption><h3>{escape(row.title)}</h3>",
            f"<p>{_caption(row)}</p></figcaption>",
            *_svg(row),
            *_table(row),
            "</figure>",
        ]
    )


def _caption(row: Row) -> str:
    words = f"{row.unit}; {_WORDS[row.better]}" if row.unit else _WORDS[row.better]
    goal = "" if row.goal is None else f"; goal {_bound(row)} (dashed line)"
    about = f"<br>{escape(row.about)}" if row.about else ""
    return f"{escape(words)}{escape(goal)}{about}"


def _bound(row: Row) -> str:
    return f"at {'most' if row.better == 'lower' else 'least'} {format_tick(row.goal or 0.0)} {row.unit}".rstrip()


def _svg(row: Row) -> Iterator[str]:
    yield from (
        f'<p class="trouble">{escape(name)}: not measured: {escape(why)}</p>' for name, why in row.faults.items()
    )
    if not row.figures:
        return
    scale = make_scale(max(*(one.high for one in row.figures.values()), row.goal or 0.0, 0.0))
    below = len(row.figures) * _ITEM
    name = f"svg-{escape(row.id)}"
    yield f'<svg width="100%" height="{below + _AXIS}" role="img" aria-labelledby="{name}-title {name}-desc">'
    yield f'<title id="{name}-title">{escape(row.title)}</title><desc id="{name}-desc">{escape(_spoken(row))}</desc>'
    yield f'<svg width="{_PLOT}" height="{below + _AXIS}" overflow="visible">'
    yield from _axis(scale, below)
    if row.goal is not None:
        yield f'<line class="goal" x1="{_at(scale, row.goal)}" x2="{_at(scale, row.goal)}" y1="0" y2="{below}"/>'
    for number, (program, figure) in enumerate(row.figures.items()):
        yield from _bar(row, program, figure, scale, number * _ITEM)
    yield "</svg>"
    for number, program in enumerate(row.figures):
        ratio = row.ratio(program)
        if ratio is not None:
            kind = "ratio ahead" if row.is_ahead(program) else "ratio"
            yield f'<text class="{kind}" x="100%" y="{number * _ITEM + _TEXT}">{format_times(ratio)}</text>'
    if row.peers and row.ours[0] in row.figures:
        number = list(row.figures).index(row.ours[0])
        yield f'<text class="ratio" x="100%" y="{number * _ITEM + _TEXT}">ours / theirs</text>'
    yield "</svg>"


def _axis(scale: Scale, below: int) -> Iterator[str]:
    for tick in scale.ticks:
        where = _at(scale, tick)
        yield f'<line class="grid" x1="{where}" x2="{where}" y1="0" y2="{below}"/>'
        anchor = "" if tick else ' style="text-anchor:start"'
        yield f'<text class="tick" x="{where}" y="{below + _AXIS - 8}"{anchor}>{format_tick(tick)}</text>'


def _bar(row: Row, program: str, figure: Figure, scale: Scale, top: int) -> Iterator[str]:
    kind = "ours" if program in row.ours else "peer"
    yield f'<text class="name {kind}" x="0" y="{top + _TEXT}">{escape(program)}</text>'
    bar, middle = top + _BAR_TOP, top + _BAR_TOP + _BAR / 2
    yield f'<rect class="{kind}" x="0" y="{bar}" width="{_at(scale, figure.median)}" height="{_BAR}" rx="2"/>'
    low, high = _at(scale, figure.low), _at(scale, figure.high)
    if low != high:
        yield f'<line class="spread" x1="{low}" x2="{high}" y1="{middle:g}" y2="{middle:g}"/>'
        yield from (
            f'<line class="spread" x1="{end}" x2="{end}" y1="{middle - 4:g}" y2="{middle + 4:g}"/>'
            for end in (low, high)
        )
    yield f'<text class="value {kind}" x="{high}" dx="7" y="{middle + 4.5:g}">{format_value(figure.median)}</text>'


def _at(scale: Scale, value: float) -> str:
    # What a relay adds to a request may come out below zero, within the noise.
    return f"{max(0.0, scale.share(value)):.2%}"


def _spoken(row: Row) -> str:
    return "; ".join(
        f"{name} {format_value(figure.median)} {row.unit}".rstrip() for name, figure in row.figures.items()
    )


def _table(row: Row) -> Iterator[str]:
    """The same for readers, screen readers and search."""
    yield "<details><summary>Figures</summary><table>"
    yield f'<caption class="hidden">{escape(row.title)}</caption>'
    head = ("", "median", "lowest", "highest", "rounds", *(["ours / theirs"] if row.peers else []))
    yield f"<thead><tr>{''.join(map(_format_head, head))}</tr></thead><tbody>"
    for name, one in row.figures.items():
        ratio = row.ratio(name)
        cells = [format_value(one.median), format_value(one.low), format_value(one.high), str(one.rounds)]
        cells += ["" if ratio is None else format_ratio(ratio)] if row.peers else []
        yield f'<tr><th scope="row">{escape(name)}</th><td>{"</td><td>".join(cells)}</td></tr>'
    for name, why in row.faults.items():
        reason = f"not measured: {escape(why)}"
        yield f'<tr><th scope="row">{escape(name)}</th><td colspan="{len(head) - 1}">{reason}</td></tr>'
    yield "</tbody></table></details>"


def _format_head(name: str) -> str:
    return f'<th scope="col">{name}</th>' if name else "<td></td>"


def make_identifier(*parts: str) -> str:
    """An id of HTML from names: `dns-table-answers`."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
