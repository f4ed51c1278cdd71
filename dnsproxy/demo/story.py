"""The steps of the story as values, and their text: what was expected, what was seen, and whether they agree.

The law: a verdict depends on what was seen alone; no program is run here.
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
    """One attempt and its verdict."""

    title: str
    tried: str
    expected: str
    seen: str
    good: bool


def succeeded(steps: Iterable[Step]) -> bool:
    """Whether there are steps and all of them were as expected."""
    verdicts = [step.good for step in steps]
    return bool(verdicts) and all(verdicts)


def format_step(step: Step) -> str:
    """One step for a terminal; click removes the colours if there is no terminal."""
    mark = click.style("ok  ", fg="green", bold=True) if step.good else click.style("FAIL", fg="red", bold=True)
    lines = [f"{mark} {click.style(step.title, bold=True)}", _indented(step.tried), _indented(f"-> {step.seen}")]
    if not step.good:
        lines.append(_indented(f"expected: {step.expected}"))
    return "\n".join(lines)


def format_verdict(steps: list[Step]) -> str:
    """The last line."""
    bad = sum(not step.good for step in steps)
    if bad or not steps:
        return click.style(f"{bad} of {len(steps)} steps failed.", fg="red", bold=True)
    return click.style(f"All {len(steps)} steps succeeded.", fg="green", bold=True)


def steps_as_json(steps: list[Step]) -> dict[str, Any]:
    """The report for scripts."""
    return {"success": succeeded(steps), "steps": [asdict(step) for step in steps]}


def _indented(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=" " * (_MARGIN + 1), subsequent_indent=" " * (_MARGIN + 4))
