"""The command `proxy`: from flags to a running relay with its admin port.

The law: every flag is checked and parsed here; the rest of the program sees frozen settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from proxy.header.protocol import ProxyProtocol
from proxy.routes import (
    Listening,
    Quorum,
    Route,
    check_ready_when,
    check_routes,
    parse_advertise,
    parse_namespace,
    parse_ready_when,
    parse_route,
)
from proxy.settings import LONG_IDLE, RouteServices, Settings
from sidecar.cli.completion import completion_option
from sidecar.cli.deferred_modules import defer_unused_modules
from sidecar.cli.lazy_commands import LazyCommands
from sidecar.cli.options import (
    BadUsage,
    CheckedType,
    Endpoint,
    Seconds,
    admin_option,
    kubeconfig_options,
    log_options,
    run_program,
)
from sidecar.cli.program_commands import ProgramWithCommands
from sidecar.values.build import DISTRIBUTION

# Before a command imports the libraries.
defer_unused_modules()

_EPILOG = """\b
Examples:
  proxy --route 8080=ingress.example.org:80 --route 8443=ingress.example.org:443
  proxy --route 127.0.0.1:8080=192.0.2.10:80 --proxy-protocol v2
  proxy --route 8443=service:ingress-nginx/ingress-nginx-controller:https
  proxy --route 8443=192.0.2.10:443 --route 2222=git.example.org:22,proxy-protocol=none
  proxy --routes-from services --routes-namespace switchback
  proxy tap --help                             connections of a running relay, as they end
"""

_AnyPositive = click.IntRange(1)


def _require_routes(ctx: click.Context, param: click.Parameter, value: Sequence[Route]) -> Sequence[Route]:
    """`--route` is required, unless routes come from elsewhere. Raises click's MissingParameter."""
    if not value and ctx.get_parameter_source("routes_from") in {None, ParameterSource.DEFAULT}:
        raise click.MissingParameter(ctx=ctx, param=param)
    return value


@click.command(
    cls=ProgramWithCommands,
    commands=LazyCommands({"tap": "proxy.admin.tap_command:tap"}),
    epilog=_EPILOG,
    context_settings={"auto_envvar_prefix": "PROXY"},
)
@completion_option("proxy")
@click.version_option(package_name=DISTRIBUTION, prog_name="proxy", allow_from_autoenv=False)
@click.option(
    "--route",
    type=CheckedType("[addr:]port=host:port", parse_route),
    multiple=True,
    callback=_require_routes,
    metavar="[ADDR:]PORT=BACKEND[,proxy-protocol=v1|v2|none|pass]",
    help="Relay connections from a port, without ADDR on every address, to BACKEND: HOST:PORT, or service:NS/NAME:PORT "
    "for the ready pods of a Service, or its terminating ones while none is ready. Repeatable; required without "
    "--routes-from.",
)
@click.option(
    "--routes-from",
    type=click.Choice(["services"]),
    # Before --route, which is required without it.
    is_eager=True,
    help="Follow the Services of one namespace that have the annotation switchback.dev/relay-to, and relay their "
    "ports, beside those of --route.",
)
@click.option(
    "--routes-namespace",
    type=CheckedType("namespace", parse_namespace),
    metavar="NAMESPACE",
    help="The namespace of these Services.  [default: the pod's own, or that of the kubeconfig's context]",
)
@click.option(
    "--proxy-protocol",
    type=click.Choice([str(version) for version in ProxyProtocol]),
    default=str(ProxyProtocol.V1),
    help="The header at the start of each connection, unless its --route names one. none: a client that sends a header "
    "of its own is refused; pass: that header reaches the backend.",
)
@click.option("--crc32c", is_flag=True, help="Add a checksum to headers of version 2.")
@click.option(
    "--advertise",
    type=CheckedType("port=port", parse_advertise),
    multiple=True,
    help="The destination port in the header of a --route, if it is not the listening port. Repeatable.",
)
@click.option(
    "--original-destination",
    is_flag=True,
    help="State the destination before a redirect on this computer (nft, iptables) in the header.",
)
@click.option("--connect-timeout", type=Seconds(0.1), default=5.0, help="Seconds to connect to a backend.")
@click.option(
    "--idle-timeout",
    type=Seconds(1),
    help=f"Seconds without data in either direction.  [default: {LONG_IDLE:.0f}; without a header no limit]",
)
@click.option(
    "--half-close-timeout",
    type=Seconds(1),
    default=120.0,
    help="Seconds without data after one side has finished sending.",
)
@click.option(
    "--max-connections",
    type=_AnyPositive,
    help="Concurrent connections; further clients wait.  [default: what the descriptor limit allows]",
)
@click.option(
    "--max-connections-per-client",
    type=_AnyPositive,
    help="The same for one client address; further connections are refused. Each worker counts separately.  [default: "
    "a quarter of all]",
)
@click.option(
    "--ready-when",
    type=CheckedType("any|all|[addr:]port", parse_ready_when),
    multiple=True,
    default=[str(Quorum.ANY)],
    metavar="any|all|[ADDR:]PORT",
    help="Ready while any route reaches its backend, while all do, or while the routes on these ports do. Ports are "
    "repeatable.",
)
@click.option(
    "--resolv-conf",
    type=click.Path(path_type=Path),
    default=Path("/etc/resolv.conf"),
    help="The nameservers for the names of backends; read again for each look-up. If the cluster's DNS forwards to "
    "dnsproxy, use the file of the node.",
)
@kubeconfig_options("How to reach the API server for a service: backend and --routes-from.")
@click.option(
    "--workers",
    type=_AnyPositive,
    default=1,
    help="Processes that relay, to use as many processors. A limit for one client address applies in each of them.",
)
@click.option("--drain", type=Seconds(0), default=30.0, help="Seconds for open connections to finish after SIGTERM.")
@admin_option("127.0.0.1:8082")
@click.option(
    "--tap",
    type=click.Choice(["on", "off"]),
    default="on",
    help="Whether the admin port shows each connection as it ends, with its client, to `proxy tap`.",
)
@click.option(
    "--access-log",
    is_flag=True,
    help="Write one JSON line to stdout for each connection that has ended. Lines are lost, and counted, while nothing "
    "reads stdout.",
)
@log_options
def main(
    *,
    route: Sequence[Route],
    routes_from: str | None,
    routes_namespace: str | None,
    advertise: Sequence[tuple[int, int]],
    ready_when: Sequence[Quorum | Listening],
    workers: int,
    drain: float,
    tap: str,
    admin: Endpoint | None,
    admin_host: tuple[str, ...],
    log_format: str | None,
    log_level: str,
    **values: Any,
) -> None:
    """Relay TCP connections, with a PROXY protocol header at the start of each.

    The backend then sees the client's address, and a backend that requires the header accepts the connection.
    """
    stated = dict(advertise)
    if routes_namespace is not None and routes_from is None:
        raise BadUsage(["--routes-namespace: is for --routes-from services"])
    services = None if routes_from is None else RouteServices(routes_namespace)
    try:
        check_routes(route, stated)
    except ValueError as error:
        raise BadUsage([f"--route: {error}"]) from None
    try:
        check_ready_when(tuple(ready_when), route, more_come=services is not None)
    except ValueError as error:
        raise BadUsage([f"--ready-when: {error}"]) from None
    protocol = ProxyProtocol(values.pop("proxy_protocol"))
    settings = Settings(
        routes=tuple(route),
        route_services=services,
        ready_when=tuple(ready_when),
        proxy_protocol=protocol,
        advertise=stated,
        tap=tap == "on",
        **values,
    )
    if settings.crc32c and services is None and ProxyProtocol.V2 not in map(settings.protocol_of, settings.routes):
        raise BadUsage(["--crc32c: no route has a header of version 2"])
    # Not at the top: --help and completion do not need these imports.
    from proxy.serve.program import serve  # noqa: PLC0415
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415
    from sidecar.loop.poller import BATCH  # noqa: PLC0415

    configure_logging(format=log_format, level=log_level, program="proxy")
    if workers > 1:
        from proxy.serve.supervisor import supervise  # noqa: PLC0415

        run_program(supervise, settings, admin, admin_host, drain, workers, log_format, log_level)
    run_program(serve, settings, admin, admin_host, drain, handlers=BATCH)
