"""The story as values: each step says what was expected, what was seen, and whether they agree; and how it is told.

The law: a step is good only because of what was seen. Nothing here runs anything.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import click

_MARGIN = 4
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was tried."""

    title: str
    tried: str
    expected: str
    seen: str
    good: bool


def succeeded(steps: Iterable[Step]) -> bool:
    """Whether there was anything to judge, and all of it was as expected."""
    verdicts = [step.good for step in steps]
    return bool(verdicts) and all(verdicts)


def format_step(step: Step) -> str:
    """One step for a terminal; colours are taken out by click where there is none."""
    mark = click.style("ok  ", fg="green", bold=True) if step.good else click.style("FAIL", fg="red", bold=True)
    lines = [f"{mark} {click.style(step.title, bold=True)}", _indented(step.tried), _indented(f"-> {step.seen}")]
    if not step.good:
        lines.append(_indented(f"expected: {step.expected}"))
    return "\n".join(lines)


def format_verdict(steps: list[Step]) -> str:
    """The last line."""
    bad = sum(not step.good for step in steps)
    if bad or not steps:
        return click.style(f"{bad} of {len(steps)} steps did not happen as they should.", fg="red", bold=True)
    return click.style(f"All {len(steps)} steps happened.", fg="green", bold=True)


def steps_as_json(steps: list[Step]) -> dict[str, Any]:
    """The report for scripts."""
    return {"success": succeeded(steps), "steps": [asdict(step) for step in steps]}


def _indented(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=" " * (_MARGIN + 1), subsequent_indent=" " * (_MARGIN + 4))
