"""`dnsproxy install --method print`: what the owner of the cluster's DNS is to be given, and where it goes.

The law: nothing is written to the cluster. stdout has the text alone, ready for a file; what to do with it goes to
stderr. Status 0: printed. 1: there is nothing that would work. 3: it could not be found out.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.install.change.edits import Wanted
from dnsproxy.install.change.readiness import check_ready, notes_on_readiness
from dnsproxy.install.change.refusal import Refusal
from dnsproxy.install.cluster_command import Asking
from dnsproxy.install.report.printing import Printed, print_for
from dnsproxy.install.run.applying import check_seen
from dnsproxy.install.run.survey import Order, Survey, survey
from sidecar.values.errors import ExitStatus, StartError
from sidecar.values.text import escape_controls, escaped_json, one_line


async def print_stanza(order: Order, asking: Asking) -> int:
    """Print by an order; the exit status."""
    async with await load_client(kubeconfig=asking.kubeconfig, context=asking.context) as client:
        seen = await survey(client, order)
    check_seen(seen)
    addresses = order.addresses or (seen.own.endpoints if seen.own else ())
    notes = list(_notes(seen))
    try:
        if not addresses and seen.own is not None:
            check_ready(seen.own)
        printed = print_for(seen.found, seen.choice, Wanted(addresses, seen.zones))
    except Refusal as refusal:
        raise StartError(str(refusal), status=ExitStatus.NO) from None
    notes += printed.notes
    if asking.as_json:
        click.echo(escaped_json(_document(printed, seen, notes), indent=2))
    else:
        _tell(printed, seen, notes)
    return 0


def _notes(seen: Survey) -> Iterator[str]:
    """What would be refused elsewhere: a text may be handed on before dnsproxy is there."""
    if seen.own is None:
        return
    yield from notes_on_readiness(seen.own)
    try:
        check_ready(seen.own)
    except Refusal as refusal:
        yield str(refusal)


def _tell(printed: Printed, seen: Survey, notes: list[str]) -> None:
    for note in notes:
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
