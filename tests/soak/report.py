"""The results of a soak: its problems, the tables at the end, and the same as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from tests.kit.grid import format_grid
from tests.soak.figures import Judged, Sample
from tests.soak.run import Found
from tests.soak.tally import Kind, Result

MOST_LOST: Final = 0.01
"""The share of lost questions for names of the table: a busy machine's kernel may drop a few."""
_FAILURES: Final = "dnsproxy_dns_failures_total"

_FIGURES_HEAD: Final = (
    *("figure", "", "before", "2nd quarter", "last quarter", "allowed", "lowest", "highest", "at rest", "verdict"),
)
_QUESTIONS_HEAD: Final = ("questions", "asked", *(result.value for result in Result))

NOTE: Final = """\
Medians of the second and the last quarter of the time; the first is warm-up. before: ready, not asked anything yet.
at rest: when the traffic was over and every connection closed.
"""


def find_problems(found: Found, judged: Sequence[Judged]) -> list[str]:
    """The reasons why a server is not fit to run for a year, one line each; empty if it is fit."""
    return list(_problems(found, judged))


def _problems(found: Found, judged: Sequence[Judged]) -> Iterator[str]:
    for each in judged:
        if each.verdict is not None and not each.verdict.flat:
            yield f"{each.figure.name} grew from {each.verdict.early:.4g} to {each.verdict.late:.4g}"
    if found.gone:
        yield f"the server had ended: {found.gone}"
    if found.status:
        yield f"the server ended with status {found.status}"
    if failures := found.metrics.get(_FAILURES, 0):
        yield f"{failures:.0f} queries or connections met an unexpected exception; see the log"
    if wrong := found.tally.count(Result.WRONG):
        yield f"{wrong} wrong replies, among them:"
        yield from found.tally.wrong
    table = found.tally.results[Kind.TABLE]
    if table[Result.LOST] > MOST_LOST * table.total():
        yield f"{table[Result.LOST]} of {table.total()} questions for names of the table were not answered"


def format_report(found: Found, judged: Sequence[Judged]) -> str:
    """Lines of text."""
    figures = format_grid(_FIGURES_HEAD, [_figure_cells(each, found) for each in judged], left=(0, 1, 9))
    kinds = [kind for kind in Kind if kind in found.tally.results]
    questions = format_grid(_QUESTIONS_HEAD, [_question_cells(kind, found) for kind in kinds])
    events = "".join(f"{count} {name}\n" for name, count in found.tally.events.items())
    problems = "".join(f"PROBLEM: {problem}\n" for problem in find_problems(found, judged))
    return "\n".join([figures, NOTE, questions, events, f"server: {_cpu(found)}\n", problems or "flat\n"])


def _figure_cells(each: Judged, found: Found) -> tuple[str, ...]:
    name, verdict = each.figure.name, each.verdict
    if verdict is None:
        return (name, each.figure.unit, *[""] * 7, "missing")
    return (
        *(name, each.figure.unit, _of(found.before, name), _number(verdict.early), _number(verdict.late)),
        *(f"<= {_number(verdict.most)}", _number(each.lowest), _number(each.highest), _of(found.after, name)),
        "flat" if verdict.flat else "GROWS",
    )


def _question_cells(kind: Kind, found: Found) -> tuple[str, ...]:
    results = found.tally.results[kind]
    return (str(kind), str(results.total()), *(str(results[result]) for result in Result))


def _of(sample: Sample, name: str) -> str:
    return _number(sample[name]) if name in sample else ""


def _number(value: float) -> str:
    return f"{value:.2f}".removesuffix(".00")


def _cpu(found: Found) -> str:
    used = found.metrics.get("process_cpu_seconds_total", 0.0)
    share = used / found.options.seconds
    return f"{used:.1f} s of CPU time, {share:.1%} of one core; exit status {found.status}"


def to_json(found: Found, judged: Sequence[Judged], **head: Any) -> dict[str, Any]:
    """The settings, the verdicts, and every sample."""
    return {
        **head,
        **asdict(found.options),
        "problems": find_problems(found, judged),
        "figures": [
            {"name": each.figure.name, "flat": each.verdict and each.verdict.flat, **asdict(each)} for each in judged
        ],
        "questions": {
            kind: {result.value: count for result, count in results.items()}
            for kind, results in found.tally.results.items()
        },
        "events": found.tally.events,
        "before": found.before,
        "after": found.after,
        "status": found.status,
        "metrics": found.metrics,
        "samples": found.samples,
    }
