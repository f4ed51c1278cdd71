"""The command line of `dnsproxy tap`: options to a TapRequest.

The law: every mistake of a user is one line here that names the option; what the options mean is in the room tap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dnsproxy.cluster_dns.options import OBJECT_REF, is_given, output_option
from sidecar.cli.options import BadUsage, CheckedType, Command, EndpointType, Seconds, kubeconfig_options, run_program

if TYPE_CHECKING:
    from dnsproxy.tap_command.request import ServicePods

_PORT = (1, 65_535)
_COUNT = (1, 1_000_000_000)
_ADMIN_PORT = 8081
_CLUSTER_FLAGS = ("--admin-port", "--kubeconfig", "--context")

EPILOG = """\b
Examples:
  dnsproxy tap
  dnsproxy tap app.example.org '*.shop.example.org' --type AAAA
  dnsproxy tap --client 192.0.2.0/24 --outcome failed --outcome refused
  dnsproxy tap app.example.org --count 1 --seconds 30 >/dev/null || echo nobody asked
  dnsproxy tap --service switchback/dnsproxy --output json | jq -r .qname
  kubectl -n switchback exec deploy/dnsproxy -- dnsproxy tap app.example.org
\b
Through a port-forward, to one pod:
  kubectl -n switchback port-forward deploy/dnsproxy 8081 &
  dnsproxy tap --admin 127.0.0.1:8081

\b
RBAC in the namespace of --service: list and watch endpointslices, get pods/proxy; with get on the Service, a wrong name
is reported. `serve --tap off` shows nothing to anybody. Behind CoreDNS each client is a CoreDNS pod; a query with EDNS
Client Subnet shows the network of the pod that asked.
"""


def _lazily(name: str) -> Callable[[str], Any]:
    """A parser of the room tap, which --help must not cost."""

    def parse(text: str) -> Any:
        from dnsproxy.tap import filters  # noqa: PLC0415

        return getattr(filters, name)(text)

    return parse


@click.command(cls=Command, epilog=EPILOG)
@click.argument("name", nargs=-1, type=CheckedType("name", _lazily("parse_name_pattern")))
@click.option(
    "--admin", type=EndpointType(), help=f"The admin port of the server to ask.  [default: 127.0.0.1:{_ADMIN_PORT}]"
)
@click.option(
    "--service",
    type=OBJECT_REF,
    metavar="NAMESPACE/NAME",
    # DNSPROXY_SERVICE is for `install`, and set in the pod of `operate`.
    allow_from_autoenv=False,
    help="Show all pods of this Service, merged by time, in place of one server. The API server asks them.",
)
@click.option(
    "--admin-port",
    type=click.IntRange(*_PORT),
    metavar="PORT",
    # Kubernetes injects DNSPROXY_ADMIN_PORT beside a Service called dnsproxy-admin.
    allow_from_autoenv=False,
    help=f"The admin port of the pods of --service.  [default: {_ADMIN_PORT}]",
)
@kubeconfig_options("How to reach the cluster of --service.")
@click.option(
    "--client",
    type=CheckedType("address|network", _lazily("parse_client")),
    multiple=True,
    help="Only queries that came from here.",
)
@click.option(
    "--type", type=CheckedType("type", _lazily("parse_type")), multiple=True, help="Only this type: A, HTTPS, TYPE65."
)
@click.option(
    "--outcome",
    "--from",
    "outcome",
    type=CheckedType("outcome", _lazily("parse_outcome")),
    metavar="table|zone|upstream|refused|failed|dropped",
    multiple=True,
    help="Only queries that ended so: the table or the policy zone answered, an upstream did, this server refused, no "
    "upstream answered, or nothing was sent.",
)
@output_option
@click.option("--count", type=click.IntRange(*_COUNT), metavar="N", help="End after N queries.")
@click.option("--seconds", type=Seconds(), help="End after this long.")
def tap(**values: Any) -> None:
    """Show the queries of a running server while they end: client, question, outcome, answer, duration.

    Each NAME may have * anywhere; several names, and several values of an option, are alternatives. Without any, all
    queries are shown. Queries that are too many to show are counted on stderr.

    Exit status: 0 as many as --count asks for were seen, without it at least one; 1 fewer; 2 bad usage; 3 the server
    can't be asked. Ctrl-C ends it with 0 or 1.
    """
    from dnsproxy.tap.filters import TapFilter  # noqa: PLC0415  # --help must not cost what this needs
    from dnsproxy.tap_command.request import LOCAL, TapRequest  # noqa: PLC0415
    from dnsproxy.tap_command.running import watch_queries  # noqa: PLC0415

    wanted = TapFilter(values["name"], values["client"], values["type"], values["outcome"])
    place = _service_pods(values) or values["admin"] or LOCAL
    request = TapRequest(wanted, place, values["count"], values["seconds"], json=values["output"] == "json")
    run_program(watch_queries, request)


def _service_pods(values: dict[str, Any]) -> ServicePods | None:
    """The pods of --service; None without it. Raises BadUsage for flags that do not fit together."""
    from dnsproxy.tap_command.request import ServicePods  # noqa: PLC0415  # as above

    service, given = values["service"], _given_flags()
    if service is None:
        if faults := [f"{flag} is for --service" for flag in _CLUSTER_FLAGS if flag in given]:
            raise BadUsage(faults)
        return None
    if "--admin" in given:
        raise BadUsage(["--admin asks one server, --service all pods: give one of them"])
    port = values["admin_port"] or _ADMIN_PORT
    return ServicePods(service, port, values["kubeconfig"], values["context"])


def _given_flags() -> set[str]:
    """The flags on the command line; variables may be meant for other commands."""
    ctx = click.get_current_context()
    return {param.opts[0] for param in ctx.command.params if is_given(ctx, param)}
