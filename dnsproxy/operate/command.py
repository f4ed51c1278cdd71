"""The command line of `dnsproxy operate`.

The law: every mistake of a user is reported here, in one line that names the flag.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from dnsproxy.cluster_dns.options import cluster_options
from dnsproxy.install.request_options import make_request, request_options
from sidecar.cli.options import (
    CheckedType,
    Program,
    Seconds,
    admin_option,
    log_options,
    run_program,
)
from sidecar.cli.stray_signals import survive_stray_signals

if TYPE_CHECKING:
    from dnsproxy.operate.program import OperateSettings

ADMIN: Final = "127.0.0.1:8085"
RELAY_SELECTOR: Final = "app.kubernetes.io/name=relay"
_WAIT_SECONDS: Final = 300.0
_PRINT: Final = "print"
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_LABEL: Final = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
    r"=(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
)
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")

EPILOG = """\b
Examples:
  dnsproxy operate --admin '[::]:8085'                    in the cluster, as deploy/ runs it
  dnsproxy operate --method print                         the owner of the cluster's DNS keeps the stanza
  kubectl -n switchback get services                      what is steered
  kubectl -n switchback exec deploy/operate -- dnsproxy status

\b
RBAC: list and watch services, endpointslices, ingressclasses, gateways and gatewayclasses, list daemonsets; get the
ConfigMaps kube-proxy, cilium-config and antrea-config; create events; in its own namespace create, patch and delete
services, and create, get and update leases; and what `dnsproxy install --watch` needs. deploy/ has all of it.
"""


def parse_selector(text: str) -> tuple[tuple[str, str], ...]:
    """`LABEL=VALUE[,LABEL=VALUE]...`, sorted. Raises ValueError."""
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not _LABEL.fullmatch(part):
            raise ValueError(f"{part!a} is not LABEL=VALUE, such as {RELAY_SELECTOR}")
    labels = dict(part.split("=", 1) for part in parts)
    if len(labels) < len(parts):
        raise ValueError(f"{text!a} has a label twice")
    return tuple(sorted(labels.items()))


def parse_namespace(text: str) -> str:
    """The name of a namespace. Raises ValueError."""
    if not _NAMESPACE.fullmatch(text):
        raise ValueError(f"{text!a} is not the name of a namespace")
    return text


@click.command(cls=Program, epilog=EPILOG)
@cluster_options
@request_options
@click.option(
    "--timeout",
    type=Seconds(),
    default=_WAIT_SECONDS,
    help="How long the cluster's DNS may take to load the stanza before a warning; 0: it is not asked.",
)
@click.option(
    "--routes-namespace",
    type=CheckedType("namespace", parse_namespace),
    help="Where the relay and its route Services are.  [default: the namespace of --service]",
)
@click.option(
    "--relay-selector",
    type=CheckedType("label=value", parse_selector),
    default=RELAY_SELECTOR,
    help="The labels by which a route Service selects the relay's pods, separated by commas.",
)
@admin_option(ADMIN)
@log_options
def operate(**flags: Any) -> None:
    """Decide which hostnames go through a relay, and keep the stanza in the cluster's DNS.

    For each ingress class and Gateway that has hostnames at dnsproxy, finds the Service of its controller, reads
    whether pods are short-circuited to it, and probes whether it demands the PROXY header. Where both are so, it writes
    a route Service: the relay relays to the controller, and `dnsproxy serve --target auto` answers the names with it,
    after a handshake through the relay has succeeded. Everything else stays as it was before Switchback. With --method
    print the stanza is left to the owner of the cluster's DNS.

    Any number of replicas may run: one leads.
    """
    survive_stray_signals()
    # --help must not cost what a cluster needs.
    from dnsproxy.operate.program import run_operate  # noqa: PLC0415
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415

    configure_logging(format=flags["log_format"], level=flags["log_level"], program="dnsproxy operate")
    run_program(run_operate, settings_of(flags))


def settings_of(flags: dict[str, Any]) -> OperateSettings:
    """The settings of these flags."""
    from dnsproxy.operate.observe.observation import Places  # noqa: PLC0415  # as above
    from dnsproxy.operate.program import OperateSettings  # noqa: PLC0415
    from sidecar.cli.cluster_program import access_of  # noqa: PLC0415

    service = flags["service"]
    namespace = flags["routes_namespace"] or service.namespace
    return OperateSettings(
        Places(service, namespace, flags["relay_selector"]),
        access_of(flags),
        None if flags["method"] == _PRINT else make_request(flags),
        flags["dns"],
        flags["timeout"],
    )
