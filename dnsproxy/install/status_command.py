"""`dnsproxy status`: reads the cluster, asks its DNS, and shows both in one table.

The law: nothing is written anywhere. stdout has the report, and the exit status is the same for each form of it: 0
installed and loaded, 1 not or not completely, 2 bad usage, 3 unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from dnsproxy.cluster_dns.options import ZONE, cluster_options, make_service_ref, output_option, service_option
from dnsproxy.dns.wire import DNS_PORT
from sidecar.cli.options import Command, Endpoint, EndpointType, run_program
from sidecar.values.text import one_line

if TYPE_CHECKING:
    from dnsproxy.cluster_dns.object_ref import ObjectRef
    from dnsproxy.install.report.comparison import Row
    from dnsproxy.install.report.verdict import StatusReport, Verdict
    from dnsproxy.install.run.status_reading import StatusRequest

_COLOURS: Final = {"ok": "green", "part": "yellow", "?": "yellow", "no": "red"}
_BY_STATUS: Final = {0: "green", 1: "red"}
EPILOG = """\b
Examples:
  dnsproxy status --context production
  dnsproxy status --output json | jq -r .verdict
  dnsproxy status --output json | jq -r .drift.diff       what an install would change
  dnsproxy status --output json | jq .versions            what runs in the cluster
  kubectl -n switchback exec deploy/operate -- dnsproxy status

\b
RBAC in the namespace of the cluster's DNS: get services and configmaps, list deployments, daemonsets and events; if the
Service is not kube-dns, list services too. In dnsproxy's namespace: get its Service, list endpointslices and events,
and, where its pods cannot be reached directly, get pods/proxy. For a stanza with zones, without --from: list ingresses
in all namespaces. A fact that must not be read is unknown, with the missing right. A difference between the versions
that run does not change the exit status.
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
@click.option(
    "--from",
    type=EndpointType(),
    help="The admin port of a running dnsproxy, whose hostnames are compared with the zones of the stanza in place of "
    "the hosts of all Ingresses, or with the rewrite lines.",
)
@click.option(
    "--zone",
    type=ZONE,
    multiple=True,
    help="Compare only hostnames in these zones, if `serve` or `install` is limited to them.  [default: all hostnames]",
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
    zone: tuple[str, ...],
    output: str,
    **others: Any,
) -> None:
    """Show what serves the cluster's DNS, whether dnsproxy is installed in it, and whether that is loaded.

    What is installed is compared with what `dnsproxy install` would write now, and its zones with the live hostnames.

    Exit status: 0 installed, up to date and loaded, 1 not or not completely, 2 bad usage, 3 unknown.
    """
    from dnsproxy.install.run.status_reading import StatusRequest  # noqa: PLC0415  # --help must not cost what this needs

    where = make_service_ref(dns_service)
    request = StatusRequest(where, service, dns, address, others["from"], zone, kubeconfig=kubeconfig, context=context)
    run_program(_status, request, output)


async def _status(request: StatusRequest, output: str) -> int:
    from dnsproxy.install.report.verdict import judge  # noqa: PLC0415  # as above
    from dnsproxy.install.run.status_reading import read_status  # noqa: PLC0415

    report = await read_status(request)
    verdict = judge(report)
    if output == "json":
        _print_document(report, verdict)
    else:
        _print_table(report, verdict)
    return verdict.status


def _print_document(report: StatusReport, verdict: Verdict) -> None:
    from dnsproxy.install.report.status_document import format_document  # noqa: PLC0415  # as above
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
