"""`dnsproxy install --method print`: prints a text for the owner of the cluster's DNS, and where it goes.

The law: nothing is written to the cluster. stdout has only the text, ready for a file; instructions go to stderr.
Status 0: printed. 1: no text would work. 3: unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.cluster_dns.refusal import ChangeRefused, check_ready, notes_on_readiness
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.cluster_command import RunOptions
from dnsproxy.install.report.printing import Printed, print_for
from dnsproxy.install.run.applying import check_seen
from dnsproxy.install.run.survey import InstallRequest, Survey, survey
from dnsproxy.install.run.upstream_comparison import note_on_upstreams
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escape_controls, escaped_json, one_line


async def print_stanza(request: InstallRequest, options: RunOptions) -> int:
    """Print what the request says; the exit status."""
    async with await load_client(kubeconfig=options.kubeconfig, context=options.context) as client:
        seen = await survey(client, request)
    check_seen(seen)
    addresses = request.addresses or (seen.own.stanza_addresses if seen.own else ())
    notes = list(_notes(seen))
    try:
        if not addresses and seen.own is not None:
            check_ready(seen.own)
        printed = print_for(seen.found, seen.choice, Wanted(addresses, seen.zones))
    except ChangeRefused as refusal:
        raise StartError(str(refusal), status=ExitStatus.NO) from None
    notes += filter(None, [await note_on_upstreams(seen.found, seen.zones, addresses)])
    notes += printed.notes
    if options.as_json:
        click.echo(escaped_json(_document(printed, seen, notes), indent=2))
    else:
        _tell(printed, seen, notes)
    return 0


def _notes(seen: Survey) -> Iterator[str]:
    """Notes on what other methods refuse: a text may be printed before dnsproxy runs."""
    if seen.own is None:
        return
    yield from notes_on_readiness(seen.own)
    try:
        check_ready(seen.own)
    except ChangeRefused as refusal:
        yield str(refusal)


def _tell(printed: Printed, seen: Survey, notes: list[str]) -> None:
    for note in notes:
        click.echo(f"Note: {one_line(note)}", err=True)
    for note in seen.notes:
        click.echo(f"Note: {one_line(note)}", err=True)
    if seen.zones_from:
        click.echo(f"zones: {', '.join(map(one_line, seen.zones))} (from {one_line(seen.zones_from)})", err=True)
    click.echo(f"goes into: {one_line(printed.where)}", err=True)
    for command in printed.apply:
        click.echo(f"  {one_line(command)}", err=True)
    click.echo(escape_controls(printed.text, keep="\n\t"), nl=False)


def _document(printed: Printed, seen: Survey, notes: list[str]) -> dict[str, object]:
    return {
        "status": 0,
        "method": "print",
        "text": printed.text,
        "where": printed.where,
        "apply": list(printed.apply),
        "zones": list(seen.zones),
        "zones_from": seen.zones_from,
        "notes": notes,
    }
