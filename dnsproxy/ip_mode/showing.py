"""Shows a run: what it is about to do, how far a wait is, and its result.

The law: stdout has the result, stderr the notes and the waits; JSON is one document on stdout and nothing else.
"""

from __future__ import annotations

from typing import Final

import click

from dnsproxy.install.report.rights import format_roles
from dnsproxy.ip_mode.outcome import Report, format_document, format_lines, format_statuses, judge
from dnsproxy.ip_mode.request import WriteRequest
from dnsproxy.ip_mode.rights import ROLE_NAME
from sidecar.cli.progress_line import ProgressLine
from sidecar.values.text import escape_controls, escaped_json, one_line

_COLOURS: Final = {0: "green", 1: "red"}


def announce(report: Report, request: WriteRequest) -> None:
    """The notes and refusals, and the changes before they are made."""
    if request.as_json:
        return
    for note in (*report.plan.notes, *map(str, report.plan.refusals)):
        click.echo(f"Note: {one_line(note)}", err=True)
    if not report.blocked:
        for line in format_lines(report):
            click.echo(one_line(line), err=request.dry_run)


def finish(report: Report, request: WriteRequest) -> int:
    """The result; the exit status."""
    verdict = judge(report)
    if request.as_json:
        click.echo(escaped_json(format_document(report, verdict), indent=2))
        return verdict.status
    if report.blocked and not report.plan.refusals:
        click.echo("Note: grant what is missing:", err=True)
        click.echo(escape_controls(format_roles(report.missing, ROLE_NAME), keep="\n"), nl=False)
    elif report.dry_run:
        _show_dry(report)
    elif not report.plan.refusals:
        for line in format_statuses(report):
            click.echo(one_line(line) if not line.startswith(" ") else f"  {one_line(line)}")
    click.secho(
        one_line(verdict.text),
        fg=_COLOURS.get(verdict.status, "yellow"),
        bold=True,
        err=report.dry_run or report.blocked,
    )
    return verdict.status


class Waiting:
    """The progress of a wait: on a terminal a line that changes, elsewhere one line."""

    def __init__(self, what: str, request: WriteRequest) -> None:
        self._what = what
        self._silent = request.as_json
        self._line = ProgressLine()
        self._said = False

    def __call__(self, passed: float) -> None:
        """Show that `passed` seconds are over."""
        if self._silent:
            return
        if self._line.on_terminal:
            self._line.show(f"Waiting for {self._what}, {passed:.0f} s")
        elif not self._said:
            click.echo(f"Waiting for {self._what}", err=True)
            self._said = True

    def end(self) -> None:
        """Leave the terminal's line empty."""
        self._line.clear()


def _show_dry(report: Report) -> None:
    plan = report.plan
    if not plan.changes and not plan.refusals:
        click.echo("Nothing would change", err=True)
    diffs = "".join(change.diff for change in plan.changes)
    click.echo(escape_controls(diffs + format_roles(plan.grants, ROLE_NAME), keep="\n\t"), nl=False)
    if report.missing:
        click.echo("Note: this account lacks some of these rights:", err=True)
        click.echo(escape_controls(format_roles(report.missing, ROLE_NAME), keep="\n"), nl=False, err=True)
