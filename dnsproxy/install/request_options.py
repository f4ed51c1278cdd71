"""What to install, on the command line: the options that make an InstallRequest, for every command that installs.

The law: the text of a flag becomes a checked value here. What a cluster needs is imported by make_request.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from dnsproxy.cluster_dns.options import ZONE, make_service_ref, service_option
from dnsproxy.dns.wire import DNS_PORT
from sidecar.cli.options import BadUsage, CheckedType, Decorated, Endpoint, EndpointType, add_options, parse_endpoint

if TYPE_CHECKING:
    from dnsproxy.install.run.survey import InstallRequest

AUTO: Final = "auto"
REWRITES: Final = "override-rewrites"
METHODS: Final = (AUTO, "import", "corefile", "stub-domains", REWRITES, "print")


def request_options(command: Decorated) -> Decorated:
    """`--method`, `--service`, `--address`, `--zone`, `--from` and `--accept-upstreams`."""
    return add_options(
        command,
        click.option(
            "--method", type=click.Choice(METHODS), default=AUTO, help="How; `auto` reports what it chooses, and why."
        ),
        service_option,
        click.option(
            "--address",
            type=CheckedType("ip[:port]", _parse_address),
            multiple=True,
            callback=_demand_address,
            help="Where CoreDNS finds dnsproxy; a hung dnsproxy delays lookups by two seconds for each address.  "
            "[default: the primary ClusterIP of --service]",
        ),
        click.option(
            "--zone",
            type=ZONE,
            multiple=True,
            help="What CoreDNS asks dnsproxy for: a zone and the names below it.  [default: every name; if the method "
            "needs zones, the registrable domains of the live hostnames]",
        ),
        click.option(
            "--from",
            type=EndpointType(),
            help="The admin port of a running dnsproxy, whose table gives the zones, or the names for rewrite lines.  "
            "[default: the ready pods of --service; for zones, if none can be asked, the hosts of all Ingresses]",
        ),
        click.option(
            "--accept-upstreams",
            is_flag=True,
            help="Install also if dnsproxy forwards all other names to other upstreams than the cluster's DNS does "
            "now, or does not reach them.",
        ),
    )


def make_request(values: Mapping[str, Any]) -> InstallRequest:
    """The request of these options, of `--dns-service` and of `--dns`. Raises BadUsage."""
    from dnsproxy.cluster_dns.method_choice import Method  # noqa: PLC0415  # --help must not cost what a cluster needs
    from dnsproxy.install.run.survey import InstallRequest  # noqa: PLC0415

    if values["method"] == REWRITES and values["address"]:
        raise BadUsage([f"--address and --method {REWRITES}: rewrite lines ask no dnsproxy, name it with --from"])
    return InstallRequest(
        make_service_ref(values["dns_service"]),
        values["service"],
        None if values["method"] == AUTO else Method(values["method"]),
        _unique(values["address"]),
        _unique(values["zone"]),
        values["from"],
        values["accept_upstreams"],
        values["dns"],
    )


def _parse_address(text: str) -> Endpoint:
    endpoint = parse_endpoint(text, default_port=DNS_PORT)
    address = ipaddress.ip_address(endpoint.host)
    if address.is_unspecified or address.is_multicast or "%" in endpoint.host:
        raise ValueError(f"{text!a} is no address that CoreDNS can ask")
    return endpoint


def _demand_address(ctx: click.Context, param: click.Parameter, value: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    if not value and ctx.params.get("file") is not None:
        raise click.MissingParameter(ctx=ctx, param=param)
    return value


def _unique(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))
