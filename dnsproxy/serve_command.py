"""The command line of `dnsproxy serve`: flags and variables to ServeSettings.

The law: whatever a person can get wrong is said here, in a line that names the flag; nothing behind it sees text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dnsproxy.claims import Claim
from dnsproxy.names import parse_hostname
from dnsproxy.resolvconf import find_cluster_domain, parse_nameservers, parse_search
from dnsproxy.static import parse_host_flag
from dnsproxy.targets import parse_addresses
from sidecar.checked_type import CheckedType
from sidecar.options import (
    Command,
    Endpoint,
    EndpointType,
    StartError,
    admin_option,
    log_options,
    run_program,
)

_DNS_PORT = 53
_DEFAULT_CLUSTER_DOMAIN = "cluster.local"
_TTL = (1, 3600)

EPILOG = """\b
Examples:
  dnsproxy serve --host app.example.org=192.0.2.10 --upstream 192.0.2.53
  dnsproxy serve --hosts-file ./hosts --listen 0.0.0.0:1053 --listen [::]:1053
  dnsproxy serve --source ingress --target 10.96.7.7
  dig @127.0.0.1 -p 1053 app.example.org
"""


def parse_target_for(text: str) -> tuple[str, tuple[str, ...]]:
    """`CLASS=ADDRESS[,ADDRESS]`. Raises ValueError."""
    name, equals, addresses = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!a} is not CLASS=IP[,IP], for example internal=192.0.2.20")
    return name, parse_addresses(addresses)


HOSTNAME = CheckedType("name", parse_hostname)
ADDRESSES = CheckedType("ip[,ip]", parse_addresses)


@click.command(cls=Command, epilog=EPILOG)
@click.option(
    "--listen",
    type=EndpointType(),
    multiple=True,
    default=["127.0.0.1:1053"],
    help="Where to answer, UDP and TCP.",
)
@click.option(
    "--upstream", type=EndpointType(_DNS_PORT), multiple=True, help="Where to forward what is not ours, in order."
)
@click.option(
    "--resolv-conf",
    type=click.Path(path_type=Path),
    default="/etc/resolv.conf",
    help="Whose nameservers to forward to where no --upstream is given.",
)
@click.option(
    "--host",
    type=CheckedType("name=ip[,ip]", parse_host_flag),
    multiple=True,
    help="A static name; *.NAME is a wildcard.",
)
@click.option(
    "--hosts-file", type=click.Path(path_type=Path), help="Static names, as in /etc/hosts; read again when it changes."
)
@click.option(
    "--source", type=click.Choice(["ingress"]), multiple=True, help="What to watch in a cluster for hostnames."
)
@click.option(
    "--kubeconfig", help="How to reach the API server.  [default: KUBECONFIG, the pod's own account, ~/.kube/config]"
)
@click.option("--context", help="Which context of the kubeconfig.")
@click.option("--ingress-class", multiple=True, help="Take only Ingresses of this class.")
@click.option("--tls-only", is_flag=True, help="Take only hosts of an Ingress's tls section.")
@click.option("--target", type=ADDRESSES, help="What the cluster's hostnames are answered with: the relay's addresses.")
@click.option(
    "--target-for",
    type=CheckedType("class=ip[,ip]", parse_target_for),
    multiple=True,
    help="The same for one ingress class.",
)
@click.option("--zone", type=HOSTNAME, multiple=True, help="Answer only names at or below this one.")
@click.option("--deny", type=HOSTNAME, multiple=True, help="Never answer this name.")
@click.option("--cluster-domain", type=HOSTNAME, help="Never answer names below it.  [default: found in --resolv-conf]")
@click.option("--ttl", type=click.IntRange(*_TTL), default=5, help="Seconds an answer may be kept.")
@click.option(
    "--drain", type=click.FloatRange(0, 3600), default=5.0, help="Seconds to answer what is under way at the end."
)
@admin_option("127.0.0.1:8081")
@log_options
def serve(log_format: str | None, log_level: str, **values: Any) -> None:
    """Answer the hostnames of a table and forward all other queries."""
    from dnsproxy.serve import run_serve  # noqa: PLC0415  # --help must not cost what a server needs
    from sidecar.logs import configure_logging  # noqa: PLC0415

    settings = make_settings(**values)
    configure_logging(format=log_format, level=log_level)
    run_program(run_serve, settings)


def make_settings(**values: Any) -> Any:
    """ServeSettings from the command's values. Raises StartError for what only fails together."""
    from dnsproxy.forward.settings import ForwardSettings  # noqa: PLC0415
    from dnsproxy.guards import Guards  # noqa: PLC0415
    from dnsproxy.plan import Targets  # noqa: PLC0415
    from dnsproxy.settings import ServeSettings  # noqa: PLC0415

    resolv_conf: Path = values["resolv_conf"]
    upstreams: tuple[Endpoint, ...] = values["upstream"] or _read_upstreams(resolv_conf)
    listen: tuple[Endpoint, ...] = values["listen"]
    _refuse_loop(listen, upstreams)
    _refuse_without_target(values)
    hosts: tuple[Claim, ...] = values["host"]
    return ServeSettings(
        listen=listen,
        forwarding=ForwardSettings(upstreams),
        targets=Targets(values["target"] or (), dict(values["target_for"])),
        guards=Guards(
            cluster_domain=values["cluster_domain"] or _cluster_domain(resolv_conf),
            zones=values["zone"],
            deny=values["deny"],
        ),
        ttl=values["ttl"],
        hosts=hosts,
        hosts_file=values["hosts_file"],
        cluster=_cluster_settings(values) if values["source"] else None,
        admin=values["admin"],
        drain=values["drain"],
    )


def _cluster_settings(values: dict[str, Any]) -> Any:
    from dnsproxy.settings import ClusterSettings  # noqa: PLC0415
    from dnsproxy.sources.ingress_source import IngressOptions  # noqa: PLC0415

    options = IngressOptions(frozenset(values["ingress_class"]), tls_only=values["tls_only"])
    return ClusterSettings(options, values["kubeconfig"], values["context"])


def _refuse_without_target(values: dict[str, Any]) -> None:
    if values["source"] and not values["target"] and not values["target_for"]:
        raise StartError("--source needs --target IP: the address that the cluster's hostnames are answered with")


def _refuse_loop(listen: tuple[Endpoint, ...], upstreams: tuple[Endpoint, ...]) -> None:
    for endpoint in upstreams:
        if endpoint in listen:
            raise StartError(f"--upstream {endpoint} is where we listen ourselves; queries would go round for ever")


def _read_upstreams(path: Path) -> tuple[Endpoint, ...]:
    try:
        addresses = parse_nameservers(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise StartError(f"--resolv-conf {path}: {error.strerror}; name servers with --upstream ADDR") from error
    if not addresses:
        raise StartError(f"--resolv-conf {path} names no nameserver; name one with --upstream ADDR")
    return tuple(Endpoint(address, _DNS_PORT) for address in addresses)


def _cluster_domain(path: Path) -> str:
    try:
        search = parse_search(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return _DEFAULT_CLUSTER_DOMAIN
    return find_cluster_domain(search) or _DEFAULT_CLUSTER_DOMAIN
