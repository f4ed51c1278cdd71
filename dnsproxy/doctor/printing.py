"""Printing: a diagnosis for people: the worst first, what was seen below it, then what to type.

The law: no meaning is in a colour alone; a line to type is never broken, so that it can be copied; text from the
cluster is escaped, and none of it is markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import IO, Final

from rich.console import Console
from rich.text import Text

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.findings import Diagnosis, Finding, Severity, Step, Unseen
from sidecar.colour import colour_choice
from sidecar.errors import ExitStatus
from sidecar.text import one_line

_MARKS: Final = {Severity.PROBLEM: "✗", Severity.WARNING: "!", Severity.INFO: "i", Severity.OK: "✓"}
_PLAIN_MARKS: Final = {Severity.PROBLEM: "x", Severity.WARNING: "!", Severity.INFO: "i", Severity.OK: "+"}
_STYLES: Final = {Severity.PROBLEM: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan", Severity.OK: "green"}
_HOSTS_SHOWN: Final = 5
_EVIDENCE_SHOWN: Final = 12
_NARROWEST: Final = 40
_WIDEST: Final = 120


def make_console(file: IO[str], environment: Mapping[str, str], *, width: int | None = None) -> Console:
    """A console on a stream: colours as sidecar.colour decides, no wider than text can be read."""
    choice = colour_choice(environment)
    console = Console(
        file=file,
        force_terminal=True if choice else None,
        no_color=choice is False,
        color_system="auto" if choice is not False else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.width = max(_NARROWEST, min(width or console.width, _WIDEST))
    return console


def print_diagnosis(diagnosis: Diagnosis, facts: Facts, console: Console) -> None:
    """Everything, the verdict last, where the eye is."""
    marks = _MARKS if _can_show("✗✓", console) else _PLAIN_MARKS
    subject = facts.hostname or "every host of the cluster"
    when = f", seen {facts.taken}" if facts.taken else ""
    server = f", Kubernetes {facts.server_version}" if facts.server_version else ""
    _print_wrapped(f"{subject}{server}{when}", console, style="bold")
    for line in diagnosis.road:
        _print_indented(line, console)
    for finding in diagnosis.findings:
        console.print()
        _print_finding(finding, marks, console)
    for unseen in diagnosis.unseen:
        console.print()
        _print_unseen(unseen, console)
    console.print()
    colour = {ExitStatus.DONE: "green", ExitStatus.NO: "red"}.get(ExitStatus(diagnosis.status), "yellow")
    _print_wrapped(diagnosis.verdict, console, style=f"bold {colour}")


def format_text(diagnosis: Diagnosis, facts: Facts, *, width: int = 100) -> str:
    """The same as plain text."""
    file = StringIO()
    print_diagnosis(diagnosis, facts, make_console(file, {"NO_COLOR": "1"}, width=width))
    return file.getvalue()


def _print_finding(finding: Finding, marks: Mapping[Severity, str], console: Console) -> None:
    severity = finding.severity
    about = f"  {finding.about}" if finding.about else ""
    head = Text.assemble(
        (f"{marks[severity]} {severity.value}", f"bold {_STYLES[severity]}"), f"  {one_line(about).strip()}".rstrip()
    )
    head.append(f"  [{finding.id}]", style="dim")
    console.print(head, soft_wrap=True)
    _print_indented(finding.text, console)
    if finding.hosts:
        _print_indented(f"hosts: {_hosts(finding.hosts)}", console)
    # Why something is well, nobody asks: --output json has it.
    for line in _shown(finding.evidence) if severity is not Severity.OK else ():
        _print_indented(f"seen: {line}", console, style="dim")
    _print_steps(finding.steps, console)


def _print_unseen(unseen: Unseen, console: Console) -> None:
    console.print(Text.assemble(("? could not look", "bold yellow"), f"  {one_line(unseen.what)}"), soft_wrap=True)
    if unseen.why:
        _print_indented(unseen.why, console, style="dim")
    _print_steps(unseen.steps, console)


def _print_steps(steps: Sequence[Step], console: Console) -> None:
    for number, step in enumerate(steps, 1):
        _print_indented(f"{f'{number}. ' if len(steps) > 1 else ''}{step.text}", console)
        for line in step.lines:
            # Never broken: a command that is cut in two is no command.
            console.print(Text(f"      {one_line(line)}", style="bold"), soft_wrap=True)


def _print_indented(text: str, console: Console, *, style: str = "") -> None:
    _print_wrapped(text, console, style=style, indent="  ")


def _print_wrapped(text: str, console: Console, *, style: str = "", indent: str = "") -> None:
    for line in Text(one_line(text), style=style).wrap(console, console.width - len(indent)):
        # rich would fill the line with blanks, which a person copies along.
        line.rstrip()
        console.print(Text(indent).append_text(line), soft_wrap=True)


def _hosts(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - _HOSTS_SHOWN} more" if len(hosts) > _HOSTS_SHOWN else ""
    return f"{', '.join(hosts[:_HOSTS_SHOWN])}{more}"


def _shown(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_EVIDENCE_SHOWN]
    if len(lines) > _EVIDENCE_SHOWN:
        yield f"and {len(lines) - _EVIDENCE_SHOWN} more, in --output json"


def _can_show(text: str, console: Console) -> bool:
    try:
        text.encode(console.encoding)
    except (UnicodeError, LookupError):
        return False
    return True
