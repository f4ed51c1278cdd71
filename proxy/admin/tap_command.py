"""The command `proxy tap`: the connections of a running relay, as they end.

The law: stdout has the connections, stderr the notes; the exit status never depends on the format of the output.
Tested in tests/proxy/test_tap.py, with the real relay.
"""

from __future__ import annotations

from functools import partial

import click

from proxy.tap.filters import parse_ending, parse_route_part
from sidecar.cli.options import CheckedType, Command, Endpoint, EndpointType, Seconds, run_program
from sidecar.values.networks import Network, parse_network

_EPILOG = """\b
Examples:
  proxy tap
  proxy tap --client 10.244.0.0/16 --end "backend reset" --output json
  proxy tap --route :8443 --count 1 --seconds 60 || echo no connection in a minute
  kubectl exec -n switchback deploy/relay -- proxy tap
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.option("--admin", type=EndpointType(), default="127.0.0.1:8082", help="The admin port of the relay to ask.")
@click.option(
    "--client", type=CheckedType("addr|network", parse_network), multiple=True, help="Only these clients. Repeatable."
)
@click.option(
    "--route",
    type=CheckedType("text", parse_route_part),
    multiple=True,
    # PROXY_ROUTE is a route of the relay, whose variables this command sees in its pod.
    allow_from_autoenv=False,
    help="Only listeners with this text in ADDR:PORT, for example :8443. Repeatable.",
)
@click.option(
    "--end",
    type=CheckedType("text", parse_ending),
    multiple=True,
    help='Only connections that ended so, for example "backend reset". Repeatable.',
)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Lines for people, or JSON.")
@click.option("--count", type=click.IntRange(1), help="End after so many connections.")
@click.option("--seconds", type=Seconds(0.1), help="End after this time.")
def tap(  # one parameter for each flag
    *,
    admin: Endpoint,
    client: tuple[Network, ...],
    route: tuple[str, ...],
    end: tuple[str, ...],
    output: str,
    count: int | None,
    seconds: float | None,
) -> None:
    """Show the connections of a running relay, one line each, as they end.

    Exit status: 0 as many were seen as --count asks for, or any without it; 1 fewer; 2 bad usage; 3 the relay can't be
    asked. Ctrl-C ends it with the same statuses.
    """
    # Not at the top: --help and completion do not need these imports.
    from proxy.tap.filters import TapFilter, format_filter  # noqa: PLC0415
    from sidecar.admin.watching import watch  # noqa: PLC0415
    from sidecar.values.tally import Tally  # noqa: PLC0415

    target = f"/tap{format_filter(TapFilter(client, route, tuple(map(parse_ending, end))))}"
    show = partial(_show, as_json=output == "json")
    run_program(partial(watch, admin, target, program="proxy", show=show, tally=Tally(count), seconds=seconds))


def _show(line: bytes, *, as_json: bool) -> bool:
    """Print a line of the answer; whether it is a connection. Raises ValueError."""
    from proxy.tap.ended import Dropped, format_json, format_line, parse_json  # noqa: PLC0415  # as above

    event = parse_json(line)
    is_note = isinstance(event, Dropped)
    if as_json:
        click.echo(format_json(event), nl=False)
    else:
        click.echo(format_line(event), err=is_note)
    return not is_note
