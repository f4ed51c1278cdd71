"""`dnsproxy install` and `dnsproxy uninstall` on a file: print a Corefile or a diff, or change the file.

The law: stdout has the result (the Corefile, or with --dry-run the diff) and nothing else; notes go to stderr. Status
0: done, also if there was nothing to do. 1: the change is refused. 2: bad usage, also a file that is no Corefile. 3:
the file could not be written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import click

from dnsproxy.corefile.files import STDIN, read_text, write_text
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.plan import Change, plan_install, plan_uninstall
from dnsproxy.corefile.stanza import Version
from dnsproxy.corefile.upstream_form import NODE
from dnsproxy.corefile.upstream_routes import find_upstream_routes, route_for
from sidecar.cli.usage import BadUsage
from sidecar.values.diffs import format_diff
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escape_controls, one_line


@dataclass(frozen=True, slots=True)
class CorefileInput:
    """A Corefile, and the name of its file."""

    name: str
    text: str

    @property
    def shown(self) -> str:
        """The name for messages."""
        return "<stdin>" if self.name == STDIN else self.name


def read_corefile(name: str) -> CorefileInput:
    """Read and check the Corefile in a file. Raises ValueError."""
    source = CorefileInput(name, _read(name))
    try:
        parse_corefile(source.text)
    except CorefileError as error:
        raise ValueError(_located(source, error)) from None
    return source


def install_file(
    source: CorefileInput,
    addresses: Sequence[Endpoint],
    zones: Sequence[str],
    *,
    coredns_version: Version | None,
    in_place: bool,
    dry_run: bool,
) -> None:
    """Add the stanza to the Corefile."""
    planned = _planned(
        source,
        lambda: plan_install(source.text, addresses=addresses, zones=zones, coredns_version=coredns_version),
    )
    notes = (*planned.notes, *_notes_on_upstreams(source, zones))
    _finish(source, replace(planned, notes=notes), in_place=in_place, dry_run=dry_run)


def _notes_on_upstreams(source: CorefileInput, zones: Sequence[str]) -> Iterator[str]:
    """Where dnsproxy has to forward all other names, so that they go where they go now."""
    routes = find_upstream_routes(source.text)
    for route in dict.fromkeys(route_for(zone, routes) for zone in zones):
        if route is not None and route.fault:
            yield f"dnsproxy forwards all other names to other upstreams than line {route.line} does: {route.fault}"
        elif route is not None and not route.upstreams:
            follow = "start dnsproxy serve with --upstream-configmap, or it asks the node's nameservers"
            yield f"names of {route.zone} go nowhere: {follow}"
        elif route is not None and route.upstreams != (NODE,):
            flags = " ".join(f"--upstream {upstream}" for upstream in route.upstreams)
            where = f"start dnsproxy serve with {flags}, or with --upstream-configmap"
            yield f"names of {route.zone} go to other upstreams than the node's: {where}"


def uninstall_file(source: CorefileInput, *, in_place: bool, dry_run: bool) -> None:
    """Remove the stanza from the Corefile."""
    _finish(source, _planned(source, lambda: plan_uninstall(source.text)), in_place=in_place, dry_run=dry_run)


def _read(name: str) -> str:
    try:
        return read_text(name)
    except OSError as error:
        raise ValueError(f"cannot read {name}: {error.strerror}") from None


def _planned(source: CorefileInput, plan: Callable[[], Change]) -> Change:
    try:
        return plan()
    except CorefileError as error:
        raise StartError(_located(source, error), status=ExitStatus.NO) from None


def _located(source: CorefileInput, error: CorefileError) -> str:
    return f"{source.shown}:{error.line}: {error}"


def _finish(source: CorefileInput, change: Change, *, in_place: bool, dry_run: bool) -> None:
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
    # The original octets for a program; escaped text for a terminal.
    shown = escape_controls(text, keep="\n\t") if sys.stdout.isatty() else text
    click.echo(shown.encode(errors="surrogateescape"), nl=False)


def _write(source: CorefileInput, text: str) -> None:
    try:
        write_text(source.name, text)
    except OSError as error:
        raise StartError(f"cannot write {source.name}: {error.strerror}", status=ExitStatus.UNKNOWN) from None
    except ValueError as error:
        raise StartError(str(error)) from None
    click.echo(f"Wrote {one_line(source.name)}", err=True)
