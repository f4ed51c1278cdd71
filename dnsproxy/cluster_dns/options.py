"""Options of the commands that work on a cluster, and the names of objects that these take.

The law: a text that is not a valid name of a Kubernetes object never becomes part of a path of the API.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.corefile.zones import ROOT
from dnsproxy.dns.names import is_wildcard, parse_hostname
from dnsproxy.dns.wire import DNS_PORT
from sidecar.cli.options import CheckedType, Decorated, EndpointType, add_options, kubeconfig_options

if TYPE_CHECKING:
    from dnsproxy.cluster_dns.found import ServiceRef

OWN_SERVICE: Final = "switchback/dnsproxy"
DNS_SERVICE: Final = "kube-system/kube-dns"
# RFC 1123 subdomain: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
_OBJECT_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")
_LONGEST_NAME: Final = 253


def parse_object_ref(text: str) -> ObjectRef:
    """The object of that name, `NAMESPACE/NAME`. Raises ValueError."""
    namespace, slash, name = text.strip().partition("/")
    if not slash or not all(len(part) <= _LONGEST_NAME and _OBJECT_NAME.fullmatch(part) for part in (namespace, name)):
        raise ValueError(f"{text!a} is not NAMESPACE/NAME, such as {DNS_SERVICE}")
    return ObjectRef(namespace, name)


def _parse_zone(text: str) -> str:
    if text.strip() == ROOT:
        return ROOT
    zone = parse_hostname(text)
    if is_wildcard(zone):
        raise ValueError(f"{text!a}: a zone covers what is below it by itself, write {zone.removeprefix('*.')}")
    return zone


ZONE: Final = CheckedType("zone", _parse_zone)
"""A zone whose names the cluster's DNS asks dnsproxy for; `.` for all names."""
OBJECT_REF: Final = CheckedType("ns/name", parse_object_ref)


def cluster_options(command: Decorated) -> Decorated:
    """The cluster, its DNS, and the address to ask: `kubeconfig`, `context`, `dns_service`, `dns`."""
    return add_options(
        command,
        kubeconfig_options("How to reach the cluster."),
        click.option(
            "--dns-service",
            type=OBJECT_REF,
            help=f"The Service that pods ask for DNS.  [default: {DNS_SERVICE}, else that of kubespray, RKE2 or "
            "OpenShift, else one with its label]",
        ),
        click.option(
            "--dns",
            type=EndpointType(default_port=DNS_PORT),
            help="Ask the cluster's DNS here, not at its Service. A kubectl port-forward works: it takes TCP.",
        ),
    )


def service_option(command: Decorated) -> Decorated:
    """`--service`: dnsproxy's own Service."""
    return click.option(
        "--service",
        type=OBJECT_REF,
        default=OWN_SERVICE,
        help="dnsproxy's own Service, whose primary ClusterIP CoreDNS asks if no --address is given.",
    )(command)


def output_option(command: Decorated) -> Decorated:
    """`--output`: text or json."""
    return click.option(
        "--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Lines for people, or JSON."
    )(command)


def make_service_ref(dns_service: ObjectRef | None) -> ServiceRef:
    """The Service to take for the cluster's DNS."""
    from dnsproxy.cluster_dns.found import ServiceRef  # noqa: PLC0415  # --help stays fast

    return ServiceRef(dns_service.namespace, dns_service.name, exact=True) if dns_service else ServiceRef()


def is_given(ctx: click.Context, param: click.Parameter) -> bool:
    """Whether a flag was given on the command line; an environment variable may be meant for other commands."""
    return ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
