"""`dnsproxy status`: reads the cluster, asks its DNS, and shows both in one table.

The law: nothing is written anywhere. stdout has the report, and the exit status is the same for each form of it: 0
installed and loaded, 1 not or not completely, 2 bad usage, 3 unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from dnsproxy.cluster_dns.options import cluster_options, make_service_ref, output_option, service_option
from dnsproxy.dns.wire import DNS_PORT
from sidecar.cli.options import Command, Endpoint, EndpointType, run_program
from sidecar.values.text import one_line

if TYPE_CHECKING:
    from dnsproxy.cluster_dns.found import Found, ServiceRef
    from dnsproxy.cluster_dns.own_service import ObjectRef
    from dnsproxy.install.report.status_report import Row
    from dnsproxy.install.report.verdict import StatusReport, Verdict

_COLOURS: Final = {"ok": "green", "part": "yellow", "?": "yellow", "no": "red"}
_BY_STATUS: Final = {0: "green", 1: "red"}
EPILOG = """\b
Examples:
  dnsproxy status --context production
  dnsproxy status --output json | jq -r .verdict
  kubectl -n switchback exec deploy/dnsproxy -- dnsproxy status

\b
RBAC in the namespace of the cluster's DNS: get services and configmaps, list deployments and daemonsets; if the Service
is not kube-dns, list services too. If nothing is installed, get on dnsproxy's own Service as well. Faults name missing
rights.
"""


@click.command(cls=Command, epilog=EPILOG)
@cluster_options
@service_option
@click.option(
    "--address",
    type=EndpointType(default_port=DNS_PORT),
    multiple=True,
    help="Where dnsproxy is asked directly.  [default: where the stanza asks it, else the ClusterIPs of --service]",
)
@output_option
def status(
    *,
    kubeconfig: str | None,
    context: str | None,
    dns_service: ObjectRef | None,
    service: ObjectRef,
    dns: Endpoint | None,
    address: tuple[Endpoint, ...],
    output: str,
) -> None:
    """Show what serves the cluster's DNS, whether dnsproxy is installed in it, and whether that is loaded.

    Exit status: 0 installed and loaded, 1 not or not completely, 2 bad usage, 3 unknown.
    """
    run_program(_status, kubeconfig, context, make_service_ref(dns_service), service, dns, address, output)


async def _status(
    kubeconfig: str | None,
    context: str | None,
    where: ServiceRef,
    service: ObjectRef,
    dns: Endpoint | None,
    addresses: tuple[Endpoint, ...],
    output: str,
) -> int:
    from dnsproxy.cluster_dns.read import (  # noqa: PLC0415
        discover,
        load_client,
        read_own,
    )
    from dnsproxy.cluster_dns.traces import find_traces  # noqa: PLC0415  # --help must not cost what this needs
    from dnsproxy.install.report.verdict import judge  # noqa: PLC0415

    async with await load_client(kubeconfig=kubeconfig, context=context) as client:
        found = await discover(client, where)
        if not addresses and not any(trace.addresses for trace in find_traces(found)):
            addresses = (await read_own(client, service)).endpoints
    report = await _ask(found, dns, addresses)
    verdict = judge(report)
    if output == "json":
        _print_document(report, verdict)
    else:
        _print_table(report, verdict)
    return verdict.status


async def _ask(found: Found, dns: Endpoint | None, addresses: tuple[Endpoint, ...]) -> StatusReport:
    from dnsproxy.cluster_dns.method_choice import choose_method  # noqa: PLC0415  # as above
    from dnsproxy.cluster_dns.probe_results import places_to_ask, zones_to_ask  # noqa: PLC0415
    from dnsproxy.cluster_dns.probing import ask_all  # noqa: PLC0415
    from dnsproxy.cluster_dns.traces import find_traces  # noqa: PLC0415
    from dnsproxy.install.report.verdict import StatusReport  # noqa: PLC0415

    traces = find_traces(found)
    direct = addresses or tuple(dict.fromkeys(address for trace in traces for address in trace.addresses))
    loaded = await ask_all((dns,) if dns else places_to_ask(found), zones_to_ask(traces))
    # One zone is enough: dnsproxy answers in all zones alike.
    answers = await ask_all(direct, (".",))
    return StatusReport(found, choose_method(found), traces, loaded, answers)


def _print_document(report: StatusReport, verdict: Verdict) -> None:
    from dnsproxy.install.report.status_report import format_document  # noqa: PLC0415  # as above
    from sidecar.values.text import escaped_json  # noqa: PLC0415

    click.echo(escaped_json(format_document(report, verdict), indent=2))


def _print_table(report: StatusReport, verdict: Verdict) -> None:
    from dnsproxy.install.report.status_report import format_rows  # noqa: PLC0415  # as above

    text = click.style(one_line(verdict.text), fg=_BY_STATUS.get(verdict.status, "yellow"), bold=True)
    # One call: click checks in each call whether stdout is a terminal.
    click.echo("\n".join([*_lines(format_rows(report)), "", text]))


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    width = max(len(row.what) for row in rows)
    widest = max(len(row.state) for row in rows)
    for row in rows:
        state = click.style(row.state.ljust(widest), fg=_COLOURS.get(row.state))
        yield f"{row.what.ljust(width)}  {state}  {row.detail}"
