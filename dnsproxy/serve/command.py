"""The command line of `dnsproxy serve`: flags and variables to ServeSettings.

The law: every mistake of a user is reported here or in settings.py, in one line that names the flag; no other module
parses text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dnsproxy.cluster_dns.options import OBJECT_REF
from dnsproxy.dns.names import parse_hostname, parse_zone
from dnsproxy.dnstap.settings import parse_collector, parse_identity
from dnsproxy.forward.settings import parse_upstream
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.serve.ownership_options import ownership_options
from dnsproxy.serve.rpz_options import rpz_options
from dnsproxy.serve.source_options import source_options
from dnsproxy.serve.target_options import target_options
from dnsproxy.sources.static_names import parse_host_flag
from dnsproxy.tap.mode import TapMode
from sidecar.cli.options import (
    CheckedType,
    Endpoint,
    Program,
    Seconds,
    admin_option,
    log_options,
    parse_endpoint,
    run_program,
)
from sidecar.sockets.inherited import SYSTEMD

_TTL = (1, 3600)
_WAITING = (1, 1_000_000)
_NAMES = (1, 100_000_000)
MOST_WORKERS = 256

EPILOG = """\b
Examples:
  dnsproxy serve --host app.example.org=192.0.2.10 --upstream 192.0.2.53
  dnsproxy serve --hosts-file ./hosts --listen 0.0.0.0:1053 --listen [::]:1053
  dnsproxy serve --source ingress --target 10.96.7.7 --upstream tls://192.0.2.53#dns.example.org
  dnsproxy serve --source traefik --source crd:sites.example.org:spec.hosts[*] --target 10.96.7.7
  dnsproxy serve --source ingress --target status --namespace shop --label-selector 'team=web,!internal'
  dnsproxy serve --replace 203.0.113.10=10.96.7.7 --upstream 192.0.2.53
  dnsproxy serve --hosts-file /etc/hosts --listen systemd    (ExecStart= of a unit with a .socket)
  dnsproxy serve --hosts-file ./hosts --rpz rpz.example.org --rpz-allow 192.0.2.0/24 --rpz-notify 192.0.2.53
  dnsproxy serve --source rpz:rpz.example.org@192.0.2.1:1053 --listen 127.0.0.1:2053
  dig @127.0.0.1 -p 1053 app.example.org
"""


def parse_listen(text: str) -> Endpoint | str:
    """`ADDR:PORT`, or the word `systemd`. Raises ValueError."""
    return SYSTEMD if text.strip() == SYSTEMD else parse_endpoint(text)


HOSTNAME = CheckedType("name", parse_hostname)
ZONE = CheckedType("zone", parse_zone)


@click.command(cls=Program, epilog=EPILOG)
@click.option(
    "--listen",
    type=CheckedType("endpoint", parse_listen),
    metavar="ADDR:PORT|systemd",
    multiple=True,
    default=["127.0.0.1:1053"],
    help="Where to answer, UDP and TCP; `systemd`: on the sockets of a .socket unit.",
)
@click.option("--share-ports", is_flag=True, help="Let several processes share the ports of --listen, one core each.")
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    metavar="N",
    default=1,
    help="How many processes answer, one core each; with more than one, another process follows the sources. "
    "--outstanding is divided among them; --outstanding-per-client, connections and open files are limited for each.",
)
@click.option(
    "--upstream",
    type=CheckedType("addr[:port]", parse_upstream),
    multiple=True,
    help="Where to forward all other queries, in order; tls://ADDR[:PORT]#NAME over TLS, tcp://ADDR[:PORT] over TCP.",
)
@click.option(
    "--upstream-configmap",
    type=OBJECT_REF,
    metavar="NAMESPACE/NAME",
    multiple=True,
    help="If no --upstream is given: forward where the cluster's DNS forwards by itself, as the Corefile in this "
    "ConfigMap says (or the upstreamNameservers of kube-dns); followed. Of several, the first that is there decides.",
)
@click.option(
    "--upstream-imports",
    type=OBJECT_REF,
    metavar="NAMESPACE/NAME",
    multiple=True,
    help="A ConfigMap with files, by its keys, that the Corefile of --upstream-configmap in the same namespace imports "
    "into its block of `.`; followed. Repeatable.",
)
@click.option(
    "--resolv-conf",
    type=click.Path(path_type=Path),
    default="/etc/resolv.conf",
    help="The nameservers and options if no --upstream is given, and what /etc/resolv.conf in --upstream-configmap "
    "means; read again when it changes.",
)
@click.option(
    "--outstanding",
    type=click.IntRange(*_WAITING),
    metavar="N",
    default=10_000,
    help="How many queries may wait for upstreams; more are REFUSED.",
)
@click.option(
    "--outstanding-per-client",
    type=click.IntRange(*_WAITING),
    metavar="N",
    default=1_000,
    help="The same for one client address.",
)
@click.option(
    "--host",
    type=CheckedType("name=ip[,ip]", parse_host_flag),
    multiple=True,
    help="A static name; *.NAME is a wildcard. The addresses of several flags for one name add up.",
)
@click.option(
    "--hosts-file", type=click.Path(path_type=Path), help="Static names, as in /etc/hosts; read again when it changes."
)
@source_options
@target_options
@click.option(
    "--snapshot",
    type=click.Path(path_type=Path),
    help="A file to keep the cluster's names in: a restart without the API server answers from it at once.",
)
@click.option("--zone", type=ZONE, multiple=True, help="Answer only names at or below this one.")
@click.option("--deny", type=HOSTNAME, multiple=True, help="Never answer this name.")
@click.option(
    "--allow",
    type=ZONE,
    multiple=True,
    help="Let the cluster's objects have names at or below this one that are denied to them by default: in search "
    "domains, internal, local and home.arpa, public suffixes, names of one label.",
)
@click.option(
    "--max-names-per-object",
    type=click.IntRange(*_NAMES),
    metavar="N",
    default=NameLimits().per_object,
    help="How many names one object of the cluster may claim; its first ones count.",
)
@click.option(
    "--max-names-per-namespace",
    type=click.IntRange(*_NAMES),
    metavar="N",
    default=NameLimits().per_namespace,
    help="How many names the objects of one namespace may claim; the youngest objects are left out.",
)
@click.option(
    "--max-names",
    type=click.IntRange(*_NAMES),
    metavar="N",
    default=NameLimits().total,
    help="How many names all objects of the cluster may claim; namespaces with the most names lose theirs first.",
)
@ownership_options
@click.option(
    "--hold",
    type=Seconds(),
    default=600.0,
    help="Seconds that a claim of another namespace waits when the claim that has a name goes, or an older one "
    "appears; 0 for none.",
)
@click.option(
    "--cluster-domain",
    type=ZONE,
    multiple=True,
    help="Never answer names below it, nor below those that --upstream-configmap and --resolv-conf tell.  [default if "
    "nothing tells one: cluster.local and cozy.local]",
)
@rpz_options
@click.option("--ttl", type=click.IntRange(*_TTL), metavar="SECONDS", default=5, help="Seconds an answer may be kept.")
@click.option(
    "--lameduck",
    type=Seconds(),
    default=5.0,
    help="Seconds after SIGTERM in which /readyz answers 503 and queries are still answered; 0 for none.",
)
@click.option("--drain", type=Seconds(), default=5.0, help="Seconds after those to answer pending queries.")
@admin_option("127.0.0.1:8081")
@click.option(
    "--tap",
    type=click.Choice([mode.value for mode in TapMode]),
    default=TapMode.ON.value,
    help="Who may see queries on the admin port: `dnsproxy tap`, and nothing is recorded without one; nobody; "
    "`recent`: also keep for a minute who asked for which name, for `dnsproxy explain`.",
)
@click.option(
    "--dnstap",
    type=CheckedType("collector", parse_collector),
    metavar="unix:PATH|tcp:ADDR:PORT",
    help="Send every query and its answer to this dnstap collector (Frame Streams), those to upstreams too.",
)
@click.option(
    "--dnstap-identity",
    type=CheckedType("text", parse_identity),
    metavar="TEXT",
    help="Which server it was, in each dnstap message.  [default: the hostname]",
)
@log_options
def serve(log_format: str | None, log_level: str, **values: Any) -> None:
    """Answer the hostnames of a table and forward all other queries."""
    from dnsproxy.serve.answering import spawner_for  # noqa: PLC0415
    from dnsproxy.serve.program import run_serve  # noqa: PLC0415  # --help must not cost what a server needs
    from dnsproxy.serve.settings import make_settings  # noqa: PLC0415
    from dnsproxy.server.dns_server import POLLED  # noqa: PLC0415
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415

    settings = make_settings(**values)
    configure_logging(format=log_format, level=log_level, program="dnsproxy serve")
    with spawner_for(settings) as spawner:
        # With workers this process has no sockets to answer on.
        run_program(run_serve, settings, spawner, handlers=POLLED if settings.workers == 1 else None)
