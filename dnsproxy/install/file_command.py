"""`dnsproxy install` and `dnsproxy uninstall` on a file: a Corefile or a diff out.

The law: stdout has the answer (the Corefile, or with --dry-run the diff) and nothing else; what there is to know goes
to stderr. Status 0: done, also where there was nothing to do. 1: the Corefile must not be changed so. 2: bad usage, a
file that is no Corefile included. 3: could not find out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from dnsproxy.corefile.files import STDIN, read_text, write_text
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.plan import Change, plan_install, plan_uninstall
from dnsproxy.corefile.stanza import Version
from sidecar.cli.usage import BadUsage
from sidecar.values.diffs import format_diff
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import ExitStatus, StartError
from sidecar.values.text import escape_controls, one_line


@dataclass(frozen=True, slots=True)
class Source:
    """A Corefile that was read, and where from."""

    name: str
    text: str

    @property
    def shown(self) -> str:
        """For people."""
        return "<stdin>" if self.name == STDIN else self.name


def parse_source(name: str) -> Source:
    """The Corefile in a file. Raises ValueError."""
    source = Source(name, _read(name))
    try:
        parse_corefile(source.text)
    except CorefileError as error:
        raise ValueError(_located(source, error)) from None
    return source


def install_file(
    source: Source,
    addresses: Sequence[Endpoint],
    zones: Sequence[str],
    *,
    coredns_version: Version | None,
    in_place: bool,
    dry_run: bool,
) -> None:
    """The Corefile with the stanza."""
    planned = _planned(
        source,
        lambda: plan_install(source.text, addresses=addresses, zones=zones, coredns_version=coredns_version),
    )
    _finish(source, planned, in_place=in_place, dry_run=dry_run)


def uninstall_file(source: Source, *, in_place: bool, dry_run: bool) -> None:
    """The Corefile without it."""
    _finish(source, _planned(source, lambda: plan_uninstall(source.text)), in_place=in_place, dry_run=dry_run)


def _read(name: str) -> str:
    try:
        return read_text(name)
    except OSError as error:
        raise ValueError(f"cannot read {name}: {error.strerror}") from None


def _planned(source: Source, plan: Callable[[], Change]) -> Change:
    try:
        return plan()
    except CorefileError as error:
        raise StartError(_located(source, error), status=ExitStatus.NO) from None


def _located(source: Source, error: CorefileError) -> str:
    return f"{source.shown}:{error.line}: {error}"


def _finish(source: Source, change: Change, *, in_place: bool, dry_run: bool) -> None:
    if in_place and source.name == STDIN:
        raise BadUsage(["--in-place: stdin cannot be written to, give --file a name"])
    for note in change.notes:
        click.echo(f"Note: {one_line(note)}", err=True)
    if not change.changed:
        click.echo(f"{one_line(source.shown)} unchanged", err=True)
    if dry_run:
        name = "Corefile" if source.name == STDIN else source.name.lstrip("/")
        _print(format_diff(change.old, change.new, name))
    elif not in_place:
        _print(change.new)
    elif change.changed:
        _write(source, change.new)


def _print(text: str) -> None:
    # Octets for a program, harmless text for a terminal.
    shown = escape_controls(text, keep="\n\t") if sys.stdout.isatty() else text
    click.echo(shown.encode(errors="surrogateescape"), nl=False)


def _write(source: Source, text: str) -> None:
    try:
        write_text(source.name, text)
    except OSError as error:
        raise StartError(f"cannot write {source.name}: {error.strerror}", status=ExitStatus.UNKNOWN) from None
    except ValueError as error:
        raise StartError(str(error)) from None
    click.echo(f"Wrote {one_line(source.name)}", err=True)
