"""`dnsproxy status`: reads the cluster, asks its DNS, tells both in one table.

The law: nothing is written anywhere. stdout is the report, and the exit status never depends on its form: 0 installed
and loaded, 1 not, or not fully, 2 bad usage, 3 could not look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from sidecar.checked_type import CheckedType
from sidecar.options import Command, Endpoint, EndpointType, run_program
from sidecar.text import one_line

if TYPE_CHECKING:
    from dnsproxy.install.discover.found import Found, Where
    from dnsproxy.install.status import Report, Verdict
    from dnsproxy.install.status_report import Row

_COLOURS: Final = {"ok": "green", "part": "yellow", "?": "yellow", "no": "red"}
_BY_STATUS: Final = {0: "green", 1: "red"}
_DNS_PORT: Final = 53
# RFC 1123 subdomain: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
_OBJECT_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")
_LONGEST_NAME: Final = 253
_NAMESPACE: Final = "kube-system"
_SERVICE: Final = "kube-dns"

EPILOG = """\b
Examples:
  dnsproxy status --context production
  dnsproxy status --output json | jq -r .verdict
  kubectl -n switchback exec deploy/dnsproxy -- dnsproxy status

\b
Needed of RBAC, in the namespace of the cluster's DNS: get services and configmaps, list deployments and daemonsets;
where the Service is not kube-dns, list services too. What is missing is named.
"""


def _parse_object_name(text: str) -> str:
    if len(text) > _LONGEST_NAME or not _OBJECT_NAME.fullmatch(text):
        raise ValueError(f"{text!a} is no name of a Kubernetes object")
    return text


OBJECT_NAME: Final = CheckedType("name", _parse_object_name)


@click.command(cls=Command, epilog=EPILOG)
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster; a pod uses its service account.")
@click.option("--context", metavar="NAME", help="A context of the kubeconfig other than its current one.")
@click.option("--namespace", "-n", type=OBJECT_NAME, help=f"Where the cluster's DNS is.  [default: {_NAMESPACE}]")
@click.option("--service", type=OBJECT_NAME, help=f"The Service that pods ask.  [default: {_SERVICE}, or its like]")
@click.option(
    "--dns",
    type=EndpointType(default_port=_DNS_PORT),
    help="Ask the cluster's DNS here, not at its Service: the end of a port-forward, which takes TCP.",
)
@click.option(
    "--address",
    type=EndpointType(default_port=_DNS_PORT),
    multiple=True,
    help="Where dnsproxy is asked directly.  [default: what is installed asks]",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="A table, or JSON.")
def status(
    *,
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    service: str | None,
    dns: Endpoint | None,
    address: tuple[Endpoint, ...],
    output: str,
) -> None:
    """Say what serves the cluster's DNS, what of dnsproxy is installed in it, and whether it is loaded.

    Exit status: 0 installed and loaded, 1 not (fully), 2 bad usage, 3 could not look.
    """
    from dnsproxy.install.discover.found import Where  # noqa: PLC0415  # --help must not cost what an answer needs

    where = Where(namespace or _NAMESPACE, service or _SERVICE, exact=bool(service))
    run_program(_status, kubeconfig, context, where, dns, address, output)


async def _status(
    kubeconfig: str | None,
    context: str | None,
    where: Where,
    dns: Endpoint | None,
    addresses: tuple[Endpoint, ...],
    output: str,
) -> int:
    from dnsproxy.install.discovering import discover, load_client  # noqa: PLC0415  # as above
    from dnsproxy.install.status import judge  # noqa: PLC0415

    async with await load_client(kubeconfig=kubeconfig, context=context) as client:
        found = await discover(client, where)
    report = await _ask(found, dns, addresses)
    verdict = judge(report)
    if output == "json":
        _print_document(report, verdict)
    else:
        _print_table(report, verdict)
    return verdict.status


async def _ask(found: Found, dns: Endpoint | None, addresses: tuple[Endpoint, ...]) -> Report:
    from dnsproxy.install.discover.choice import choose_method  # noqa: PLC0415  # as above
    from dnsproxy.install.discover.traces import find_traces  # noqa: PLC0415
    from dnsproxy.install.probing import ask_all  # noqa: PLC0415
    from dnsproxy.install.status import Report, places_to_ask, zones_to_ask  # noqa: PLC0415

    traces = find_traces(found)
    direct = addresses or tuple(dict.fromkeys(address for trace in traces for address in trace.addresses))
    loaded = await ask_all((dns,) if dns else places_to_ask(found), zones_to_ask(traces))
    # In any zone: the server itself makes no difference between them.
    answers = await ask_all(direct, (".",))
    return Report(found, choose_method(found), traces, loaded, answers)


def _print_document(report: Report, verdict: Verdict) -> None:
    from dnsproxy.install.status_report import format_document  # noqa: PLC0415  # as above
    from dnsproxy.listing import escaped_json  # noqa: PLC0415

    click.echo(escaped_json(format_document(report, verdict), indent=2))


def _print_table(report: Report, verdict: Verdict) -> None:
    from dnsproxy.install.status_report import format_rows  # noqa: PLC0415  # as above

    text = click.style(one_line(verdict.text), fg=_BY_STATUS.get(verdict.status, "yellow"), bold=True)
    # In one piece: for each call click asks anew whether this is a terminal.
    click.echo("\n".join([*_lines(format_rows(report)), "", text]))


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    width = max(len(row.what) for row in rows)
    widest = max(len(row.state) for row in rows)
    for row in rows:
        state = click.style(row.state.ljust(widest), fg=_COLOURS.get(row.state))
        yield f"{row.what.ljust(width)}  {state}  {row.detail}"
