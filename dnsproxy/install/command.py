"""`dnsproxy install` and `dnsproxy uninstall` on a file: flags in, a Corefile or a diff out.

The law: stdout has the answer (the Corefile, or with --dry-run the diff) and nothing else; what there is to know goes
to stderr. Status 0: done, also where there was nothing to do. 1: the Corefile must not be changed so. 2: bad usage, a
file that is no Corefile included. 3: could not find out.
"""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from dnsproxy.install.corefile import CorefileError
from dnsproxy.install.files import STDIN, read_text, write_text
from dnsproxy.install.parser import parse_corefile
from dnsproxy.install.plan import Change, format_diff, plan_install, plan_uninstall
from dnsproxy.install.stanza import Version
from dnsproxy.install.zones import DNS_PORT, ROOT
from dnsproxy.names import is_wildcard, parse_hostname
from sidecar.checked_type import CheckedType
from sidecar.endpoints import Endpoint, parse_endpoint
from sidecar.errors import StartError
from sidecar.text import escape_controls, one_line
from sidecar.usage import BadUsage, Command

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_VERSION = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})(?:[-+].*)?")


@dataclass(frozen=True, slots=True)
class _Source:
    """A Corefile that was read, and where from."""

    name: str
    text: str

    @property
    def shown(self) -> str:
        return "<stdin>" if self.name == STDIN else self.name


def _parse_source(name: str) -> _Source:
    source = _Source(name, _read(name))
    try:
        parse_corefile(source.text)
    except CorefileError as error:
        raise ValueError(_located(source, error)) from None
    return source


def _read(name: str) -> str:
    try:
        return read_text(name)
    except OSError as error:
        raise ValueError(f"cannot read {name}: {error.strerror}") from None


def _parse_address(text: str) -> Endpoint:
    endpoint = parse_endpoint(text, default_port=DNS_PORT)
    address = ipaddress.ip_address(endpoint.host)
    if address.is_unspecified or address.is_multicast or "%" in endpoint.host:
        raise ValueError(f"{text!a} is no address that CoreDNS can ask")
    return endpoint


def _parse_zone(text: str) -> str:
    if text.strip() == ROOT:
        return ROOT
    zone = parse_hostname(text)
    if is_wildcard(zone):
        raise ValueError(f"{text!a}: a zone covers what is below it by itself, write {zone.removeprefix('*.')}")
    return zone


def _parse_version(text: str) -> Version:
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!a} is not a version such as 1.11.3")
    return tuple(map(int, match.groups()))


def _demand_address(ctx: click.Context, param: click.Parameter, value: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    if not value and ctx.params.get("file") is not None:
        raise click.MissingParameter(ctx=ctx, param=param)
    return value


def _file_options(command: Decorated) -> Decorated:
    options = [
        click.option(
            "--file",
            type=CheckedType("corefile", _parse_source),
            is_eager=True,
            help="Work on this Corefile, `-` for stdin; the result goes to stdout.",
        ),
        click.option("--in-place", is_flag=True, help="Write the result into --file instead."),
        click.option("--dry-run", is_flag=True, help="Show what would change, as a unified diff."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=Command)
@_file_options
@click.option(
    "--address",
    type=CheckedType("ip[:port]", _parse_address),
    multiple=True,
    callback=_demand_address,
    help="Where CoreDNS finds dnsproxy: its Service's ClusterIP; one per family for dual stack.",
)
@click.option(
    "--zone",
    type=CheckedType("zone", _parse_zone),
    multiple=True,
    default=[ROOT],
    help="What CoreDNS asks dnsproxy for: a zone and the names below it.",
)
@click.option(
    "--coredns-version",
    type=CheckedType("version", _parse_version),
    help="The CoreDNS that will read this; without it only what 1.9.4 and later know is written.",
)
def install(
    *,
    file: _Source | None,
    in_place: bool,
    dry_run: bool,
    address: tuple[Endpoint, ...],
    zone: tuple[str, ...],
    coredns_version: Version | None,
) -> None:
    """Put the stanza into a Corefile that makes CoreDNS ask dnsproxy first.

    \b
    dnsproxy install --file Corefile --address 10.96.0.53 --dry-run
    dnsproxy install --file Corefile --address 10.96.0.53 --in-place

    The upstreams of today stand second in the stanza, so a dead dnsproxy costs no cluster its DNS. Installing again
    follows a changed address; `dnsproxy uninstall` gives the Corefile back as it was.
    """  # noqa: D301  # \b is click's mark for lines to leave alone
    source = _demand_file(file, "install")
    planned = _planned(
        source,
        lambda: plan_install(source.text, addresses=address, zones=zone, coredns_version=coredns_version),
    )
    _finish(source, planned, in_place=in_place, dry_run=dry_run)


@click.command(cls=Command)
@_file_options
def uninstall(*, file: _Source | None, in_place: bool, dry_run: bool) -> None:
    """Take the stanza out of a Corefile again; everything else stays as it is.

    \b
    dnsproxy uninstall --file Corefile --dry-run
    dnsproxy uninstall --file Corefile --in-place
    """  # noqa: D301  # \b is click's mark for lines to leave alone
    source = _demand_file(file, "uninstall")
    planned = _planned(source, lambda: plan_uninstall(source.text))
    _finish(source, planned, in_place=in_place, dry_run=dry_run)


def _demand_file(file: _Source | None, command: str) -> _Source:
    if file is None:
        raise StartError(f"{command} works on files only as yet, not on a cluster: give it --file COREFILE", status=3)
    return file


def _planned(source: _Source, plan: Callable[[], Change]) -> Change:
    try:
        return plan()
    except CorefileError as error:
        raise StartError(_located(source, error), status=1) from None


def _located(source: _Source, error: CorefileError) -> str:
    return f"{source.shown}:{error.line}: {error}"


def _finish(source: _Source, change: Change, *, in_place: bool, dry_run: bool) -> None:
    if in_place and source.name == STDIN:
        raise BadUsage(["--in-place: stdin cannot be written to, give --file a name"])
    for note in change.notes:
        click.echo(f"Note: {one_line(note)}", err=True)
    if not change.changed:
        click.echo(f"{one_line(source.shown)} unchanged", err=True)
    if dry_run:
        _print(format_diff(change, "Corefile" if source.name == STDIN else source.name.lstrip("/")))
    elif not in_place:
        _print(change.new)
    elif change.changed:
        _write(source, change.new)


def _print(text: str) -> None:
    # Octets for a program, harmless text for a terminal.
    shown = escape_controls(text, keep="\n\t") if sys.stdout.isatty() else text
    click.echo(shown.encode(errors="surrogateescape"), nl=False)


def _write(source: _Source, text: str) -> None:
    try:
        write_text(source.name, text)
    except OSError as error:
        raise StartError(f"cannot write {source.name}: {error.strerror}", status=3) from None
    except ValueError as error:
        raise StartError(str(error)) from None
    click.echo(f"Wrote {one_line(source.name)}", err=True)
