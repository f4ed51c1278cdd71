"""Printing: a diagnosis as text: the worst finding first, its evidence below it, then the lines to type.

The law: colour never carries a meaning by itself; a line to type is never wrapped, so that it can be copied; text from
the cluster is escaped.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TextIO

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.findings import Diagnosis, Finding, Remedy, Severity, Unseen
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import colour_choice, one_line

_MARKS: Final = {Severity.PROBLEM: "✗", Severity.WARNING: "!", Severity.INFO: "i", Severity.OK: "✓"}
_ASCII_MARKS: Final = {Severity.PROBLEM: "x", Severity.WARNING: "!", Severity.INFO: "i", Severity.OK: "+"}
_COLOURS: Final = {Severity.PROBLEM: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan", Severity.OK: "green"}
_VERDICT_COLOURS: Final[Mapping[int, str]] = {
    ExitStatus.DONE: "green",
    ExitStatus.NO: "red",
    ExitStatus.UNKNOWN: "yellow",
}
_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
"""Parameters of SGR, ECMA-48 8.3.117."""
_HOSTS_SHOWN: Final = 5
_EVIDENCE_SHOWN: Final = 12
_NARROWEST: Final = 40
_WIDEST: Final = 120
_DEFAULT_WIDTH: Final = 80


@dataclass(frozen=True, slots=True)
class Style:
    """How a diagnosis looks."""

    width: int = 100
    """Columns for prose."""
    colour: bool = False
    ascii: bool = False
    """Whether the stream cannot encode ✗ and ✓."""

    def paint(self, text: str, *names: str) -> str:
        """The text in bold, dim or a colour; unchanged without colour."""
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m" if self.colour and names else text

    def wrap(self, text: str, *names: str, indent: str = "") -> Iterator[str]:
        """The lines of a text of any length."""
        for line in textwrap.wrap(one_line(text), self.width - len(indent), break_on_hyphens=False):
            yield f"{indent}{self.paint(line, *names)}"


def style_of(file: TextIO, environment: Mapping[str, str]) -> Style:
    """The style for a stream: colour by sidecar.values.text, the terminal's width within what is easy to read."""
    choice = colour_choice(environment)
    width = max(_NARROWEST, min(_terminal_width(environment), _WIDEST))
    return Style(width, file.isatty() if choice is None else choice, not _can_show("✗✓", file))


def _terminal_width(environment: Mapping[str, str]) -> int:
    columns = environment.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    # Into a pager, only stdin or stderr is a terminal.
    for descriptor in range(3):
        with suppress(OSError):
            return os.get_terminal_size(descriptor).columns or _DEFAULT_WIDTH
    return _DEFAULT_WIDTH


def _can_show(text: str, file: TextIO) -> bool:
    try:
        text.encode(file.encoding or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def format_diagnosis(diagnosis: Diagnosis, facts: Facts, style: Style | None = None) -> str:
    """The whole diagnosis; the verdict is last, where a terminal shows it."""
    return "\n".join(_lines(diagnosis, facts, style or Style()))


def _lines(diagnosis: Diagnosis, facts: Facts, style: Style) -> Iterator[str]:
    subject = facts.hostname or "every host of the cluster"
    when = f", seen {facts.taken}" if facts.taken else ""
    server = f", Kubernetes {facts.server_version}" if facts.server_version else ""
    yield from style.wrap(f"{subject}{server}{when}", "bold")
    for line in diagnosis.path:
        yield from style.wrap(line, indent="  ")
    for finding in diagnosis.findings:
        yield ""
        yield from _finding(finding, style)
    for unseen in diagnosis.unseen:
        yield ""
        yield from _unseen(unseen, style)
    yield ""
    yield from style.wrap(diagnosis.verdict, "bold", _VERDICT_COLOURS[diagnosis.status])


def _finding(finding: Finding, style: Style) -> Iterator[str]:
    severity = finding.severity
    mark = (_ASCII_MARKS if style.ascii else _MARKS)[severity]
    about = one_line(finding.about)
    head = style.paint(f"{mark} {severity.value}", "bold", _COLOURS[severity])
    yield f"{head}{f'  {about}' if about else ''}{style.paint(f'  [{finding.id}]', 'dim')}"
    yield from style.wrap(finding.text, indent="  ")
    if finding.hosts:
        yield from style.wrap(f"hosts: {_hosts(finding.hosts)}", indent="  ")
    # The evidence of an OK finding is in --output json only.
    for line in _shown(finding.evidence) if severity is not Severity.OK else ():
        yield from style.wrap(f"seen: {line}", "dim", indent="  ")
    yield from _steps(finding.steps, style)


def _unseen(unseen: Unseen, style: Style) -> Iterator[str]:
    yield f"{style.paint('? could not look', 'bold', 'yellow')}  {one_line(unseen.what)}"
    if unseen.why:
        yield from style.wrap(unseen.why, "dim", indent="  ")
    yield from _steps(unseen.steps, style)


def _steps(steps: Sequence[Remedy], style: Style) -> Iterator[str]:
    for number, step in enumerate(steps, 1):
        yield from style.wrap(f"{f'{number}. ' if len(steps) > 1 else ''}{step.text}", indent="  ")
        # Never wrapped: a command in two lines cannot be copied.
        yield from (f"      {style.paint(one_line(line), 'bold')}" for line in step.lines)


def _hosts(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - _HOSTS_SHOWN} more" if len(hosts) > _HOSTS_SHOWN else ""
    return f"{', '.join(hosts[:_HOSTS_SHOWN])}{more}"


def _shown(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_EVIDENCE_SHOWN]
    if len(lines) > _EVIDENCE_SHOWN:
        yield f"and {len(lines) - _EVIDENCE_SHOWN} more, in --output json"
