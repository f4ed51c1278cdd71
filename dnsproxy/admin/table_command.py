"""The commands `dnsproxy table` and `dnsproxy explain`: what a running server answers, and why or why not.

The law: stdout has the answer, stderr the notes; the exit status never depends on the format of the output.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from dnsproxy.dns.names import parse_zone
from sidecar.cli.options import CheckedType, Command, Decorated, Endpoint, EndpointType, StartError, run_program
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escape_controls, message_of

if TYPE_CHECKING:
    from dnsproxy.admin.listing import Listing, Row

_PROGRAM = "dnsproxy serve"

TABLE_EPILOG = """\b
Examples:
  dnsproxy table --zone example.org
  dnsproxy table --output json | jq -r '.names[].hostname'
  kubectl exec deploy/dnsproxy -- dnsproxy table --output hosts
"""

EXPLAIN_EPILOG = """\b
Examples:
  dnsproxy explain app.example.org
  dnsproxy explain app.example.org --admin 127.0.0.1:8081 --output json
  dnsproxy explain app.example.org >/dev/null || echo not in the table
"""


def _parse_name(text: str) -> str:
    from dnsproxy.admin.explain import LONGEST  # noqa: PLC0415  # --help must not cost what an answer needs

    if not text.strip():
        raise ValueError("a name is needed, for example app.example.org")
    if len(text) > LONGEST:
        raise ValueError(f"a name has at most 255 octets, and this has {len(text)} characters")
    return text


def _asking(command: Decorated) -> Decorated:
    return click.option(
        "--admin", type=EndpointType(), default="127.0.0.1:8081", help="The admin port of the server to ask."
    )(command)


@click.command(cls=Command, epilog=TABLE_EPILOG)
@_asking
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "hosts"]),
    default="text",
    help="Columns, JSON, or a hosts file for --hosts-file.",
)
@click.option("--zone", type=CheckedType("name", parse_zone), multiple=True, help="Only names at or below this one.")
def table(admin: Endpoint, output: str, zone: tuple[str, ...]) -> None:
    """List the names that a running server answers.

    Exit status: 0 listed, 2 bad usage, 3 the server can't be asked.
    """
    run_program(_table, admin, output, zone)


@click.command(cls=Command, epilog=EXPLAIN_EPILOG)
@click.argument("name", type=CheckedType("name", _parse_name))
@_asking
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Lines for people, or JSON.")
def explain(name: str, admin: Endpoint, output: str) -> None:
    """Show which object, rule and target answer NAME, and the excluded claims; or why nothing does.

    Exit status: 0 answered, 1 not in the table, 2 bad usage, 3 the server can't be asked.
    """
    run_program(_explain, name, admin, output)


async def _table(admin: Endpoint, output: str, zones: tuple[str, ...]) -> int:
    from dnsproxy.admin.listing import parse_listing, select_rows  # noqa: PLC0415  # as above
    from sidecar.admin.asking import ask  # noqa: PLC0415

    octets = await ask(admin, "/table", program=_PROGRAM)
    try:
        listing = parse_listing(octets)
    except ValueError as error:
        raise _no_answer(admin, error) from None
    rows = select_rows(listing.names, zones=zones)
    _print(_lines(listing, rows, output))
    _print_notes(listing, rows, output)
    return 0


async def _explain(name: str, admin: Endpoint, output: str) -> int:
    from dnsproxy.admin.explain import format_document, format_explanation, parse_explanation  # noqa: PLC0415
    from sidecar.admin.asking import ask  # noqa: PLC0415

    octets = await ask(admin, f"/explain?name={quote(name, safe='')}", program=_PROGRAM)
    try:
        explanation = parse_explanation(octets)
    except ValueError as error:
        raise _no_answer(admin, error) from None
    if output == "json":
        click.echo(format_document(explanation))
    else:
        verdict, *lines = format_explanation(explanation)
        click.secho(verdict, fg="green" if explanation.answer else "yellow")
        _print(lines)
    return ExitStatus.DONE if explanation.answer else ExitStatus.NO


def _lines(listing: Listing, rows: list[Row], output: str) -> Iterable[str]:
    from dnsproxy.admin.listing import format_columns, format_hosts, format_json  # noqa: PLC0415  # as above

    if output == "json":
        return format_json(listing, rows)
    if output == "hosts":
        return format_hosts(rows)
    headings, *lines = format_columns(rows)
    return [click.style(headings, bold=True), *lines]


def _print_notes(listing: Listing, rows: list[Row], output: str) -> None:
    if output != "json":
        for note in listing.notes:
            click.echo(f"Note: {escape_controls(note)}", err=True)
    if output == "text" and not rows:
        click.echo("No name is in the table." if not listing.names else "No name is in these zones.", err=True)


def _print(lines: Iterable[str]) -> None:
    # In one call: click checks at each call whether this is a terminal.
    text = "\n".join(lines)
    if text:
        click.echo(text)


def _no_answer(admin: Endpoint, error: ValueError) -> StartError:
    return StartError(
        f"--admin {admin}: the answer is not one of this version's `dnsproxy serve` ({message_of(error)})",
        status=ExitStatus.UNKNOWN,
    )
