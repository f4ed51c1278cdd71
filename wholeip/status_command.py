"""`wholeip status`: asks a running agent for its document, and prints it.

The law: the answer is a Document or a StartError, and no character of it reaches a terminal unescaped.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from sidecar.admin.asking import ask
from sidecar.cli.options import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import align_columns, one_line
from wholeip.agent.document import Document, describe_opened, format_json, parse_document

_HEADINGS = ("SERVICE", "ADDRESS", "POD", "LETS IN", "EGRESS", "RUNS")


async def print_status(admin: Endpoint, output: str) -> int:
    """Ask and print; the exit status. Raises StartError."""
    octets = await ask(admin, "/mappings", program="wholeip run")
    try:
        document = parse_document(octets)
    except ValueError as error:
        text = f"--admin {admin}: the answer is not the document of `wholeip run` of this version ({error})"
        raise StartError(text, status=ExitStatus.UNKNOWN) from None
    if output == "json":
        click.echo(format_json(document))
    else:
        click.echo("\n".join(format_text(document)))
    return ExitStatus.DONE if document.ready else ExitStatus.NO


def format_text(document: Document) -> Iterator[str]:
    """Lines for people."""
    rows = [
        (
            one_line(mapping.service),
            one_line(mapping.address),
            one_line(mapping.endpoint),
            one_line(describe_opened(mapping.opened, icmp=mapping.icmp)),
            "yes" if mapping.egress else "no",
            "here" if mapping.here else "elsewhere",
        )
        for mapping in document.mappings
    ]
    if rows:
        headings, *lines = align_columns([_HEADINGS, *rows])
        yield click.style(headings, bold=True)
        yield from lines
        yield ""
    for report in document.reports:
        yield f"{one_line(report.service)}: {one_line(report.detail)} ({one_line(report.reason)})"
    if document.reports:
        yield ""
    node = f" on {one_line(document.node)}" if document.node else ""
    colour = "green" if document.ready else "red"
    yield click.style(f"{'Ready' if document.ready else 'Not ready'}{node}: {one_line(document.state)}", fg=colour)
