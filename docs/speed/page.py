"""The page of a run: one HTML file that needs no other, no script and no network. Pure, but that it reads page.css.

The law: everything in the run is on the page, also what was not measured, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

from docs.speed.chart import format_chart
from docs.speed.headlines import headlines_of
from docs.speed.run import Bench, Run
from docs.speed.scale import TIMES, format_times

_CSS: Final = Path(__file__).with_name("page.css")

_HOW: Final = """\
<p>One process each, one after the other in rounds, so that other work of the machine strikes all alike. A bar is the
median of the rounds, and begins at zero; the line over it goes from the lowest round to the highest.
<em>Ours / theirs</em> is the ratio of two medians of this run, bold where Switchback is ahead. Seconds of one machine
say little about others; ratios say more. Repeat it with <code>make bench</code>.</p>"""


def format_page(run: Run, *, back: str = "") -> str:
    """The whole file; `back`: the page that has led to it."""
    style = _CSS.read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>Switchback beside its peers, {escape(run.date)}</title>",
            f"<style>\n{style}</style></head><body><main>",
            *_format_head(run, back),
            *_format_tiles(run),
            *(line for bench in run.benches for line in _format_bench(run, bench)),
            *_format_machine(run),
            "</main></body></html>",
            "",
        ]
    )


def _format_head(run: Run, back: str) -> Iterator[str]:
    yield "<header>"
    if back:
        yield f'<p><a href="{escape(back)}">Speed, in the guide</a></p>'
    yield "<h1>Switchback beside its peers</h1>"
    said = f"{run.date}, commit {run.commit}: {len(run.rows)} comparisons in {run.minutes:.0f} minutes"
    yield f'<p class="muted">{escape(said)}; on {escape(_machine(run))}.</p>'
    yield f"{_HOW}</header>"
    links = "".join(f'<li><a href="#{escape(one.name)}">{escape(one.title)}</a></li>' for one in run.benches)
    yield f'<nav aria-label="Benchmarks"><ul>{links}<li><a href="#machine">Machine and versions</a></li></ul></nav>'


def _machine(run: Run) -> str:
    one = run.machine
    return f"{one.processors} processors ({one.model}), {one.memory_gb:.0f} GB, Linux {one.kernel}"


def _format_tiles(run: Run) -> Iterator[str]:
    yield '<section aria-labelledby="glance"><h2 id="glance">At a glance</h2><div class="tiles">'
    for headline, row, ratios in headlines_of(run):
        words = "more is better" if row.better == "higher" else "less is better"
        items = "".join(_format_item(peer, ratio, ahead=row.is_ahead(peer)) for peer, ratio in ratios)
        work = headline.work[0].upper() + headline.work[1:]
        yield f'<div class="tile"><h3><a href="#{row.id}">{escape(work)}</a></h3><p>{words}</p><ul>{items}</ul></div>'
    yield "</div></section>"


def _format_item(peer: str, ratio: float, *, ahead: bool) -> str:
    kind = ' class="ahead"' if ahead else ""
    return f"<li{kind}><b>{format_times(ratio)}</b> <span>{escape(peer)}</span></li>"


def _format_bench(run: Run, bench: Bench) -> Iterator[str]:
    name = escape(bench.name)
    yield f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(bench.title)}</h2>'
    yield f'<p class="muted">{escape(bench.about)}</p>'
    if bench.trouble:
        yield f'<p class="trouble">{"Failed" if bench.failed else "Not measured"}: {escape(bench.trouble)}</p>'
    if charts := [format_chart(row) for row in run.rows_of(bench.name)]:
        yield '<div class="charts">'
        yield from charts
        yield "</div>"
    yield "</section>"


def _format_machine(run: Run) -> Iterator[str]:
    one = run.machine
    facts = {
        "processors": f"{one.processors} {TIMES} {one.model}",
        "memory": f"{one.memory_gb:.0f} GB",
        "system": f"{one.system}, Linux {one.kernel}",
        "load before": f"{one.load:.1f}",
        "beside the run": one.beside or "not stated",
        "date, commit": f"{run.date}, {run.commit}",
        "time": ", ".join(f"{each.name} {each.seconds / 60:.1f} min" for each in run.benches if each.seconds),
    }
    yield '<section aria-labelledby="machine"><h2 id="machine">Machine and versions</h2><div class="charts">'
    for about in (facts, run.programs):
        items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in about.items())
        yield f'<div class="tile"><dl>{items}</dl></div>'
    yield "</div></section>"
