"""The flags of `dnsproxy serve` that say what to read from a cluster: its sources, their classes, and how to reach it.

The law: as in command.py; the values become one ClusterSettings.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from dnsproxy.hostnames.targets import AUTO, Targets
from dnsproxy.serve.rpz_options import parse_source
from dnsproxy.serve.selection_options import make_selection, selection_options
from dnsproxy.sources.described.custom import PREFIX, resource_of
from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.names import BUILT_IN, parse_source_class
from dnsproxy.sources.settings import ClusterSettings, GatewayOptions, IngressOptions, SourceOptions
from sidecar.cli.options import CheckedType, Decorated, add_options, kubeconfig_options
from sidecar.cli.usage import GatheringOption
from sidecar.values.errors import StartError


def source_options(command: Decorated) -> Decorated:
    """--source and what belongs to it."""
    return add_options(
        command,
        click.option(
            "--source",
            type=CheckedType("source", parse_source),
            cls=GatheringOption,
            metavar="NAME|crd:PLURAL.GROUP:PATH[,PATH]|rpz:ZONE@HOST:PORT",
            multiple=True,
            help="What to watch in a cluster for hostnames. ingress; gateway: the Gateway API's Gateways, ListenerSets "
            "and routes; service: Services with the annotation switchback.dev/hostname; traefik: IngressRoutes and "
            "IngressRouteTCPs; openshift: Routes; contour: HTTPProxies; istio: its Gateways and VirtualServices; "
            "external-dns: its annotations on Services, Ingresses and Gateways; dnsendpoint: its DNSEndpoints, whose "
            "addresses --annotations and --target-network must allow; crd: objects of any other kind, by the path of "
            "their hostnames; rpz: the table of another dnsproxy (--rpz), of several the first that answers. Variables "
            "that begin with DNSPROXY_SOURCE_ add their values to DNSPROXY_SOURCE.",
        ),
        click.option(
            "--class-of",
            type=CheckedType("source=class", parse_source_class),
            metavar="SOURCE=CLASS",
            multiple=True,
            help="Take only objects of this class of a source other than ingress and gateway: traefik=internal.",
        ),
        kubeconfig_options(),
        selection_options,
        click.option("--ingress-class", metavar="NAME", multiple=True, help="Take only Ingresses of this class."),
        click.option("--gateway-class", metavar="NAME", multiple=True, help="Take only Gateways of this class."),
        click.option("--tls-only", is_flag=True, help="Take only hosts of an Ingress's tls section."),
        click.option(
            "--tls-hosts",
            type=click.Choice([one.value for one in TlsHosts]),
            default=TlsHosts.RULES.value,
            help="Which hosts of an Ingress's tls section to take: those that its rules serve, or all. The names of a "
            "certificate may be elsewhere.",
        ),
    )


def make_cluster_settings(values: dict[str, Any]) -> ClusterSettings:
    """What to read, from the values by the flags' names. Raises StartError."""
    sources = values["source"]
    ingress = IngressOptions(
        frozenset(values["ingress_class"]), tls_only=values["tls_only"], tls_hosts=TlsHosts(values["tls_hosts"])
    )
    gateway = GatewayOptions(frozenset(values["gateway_class"]))
    return ClusterSettings(
        ingress=ingress if "ingress" in sources else None,
        gateway=gateway if "gateway" in sources else None,
        services="service" in sources,
        others=_other_sources(values),
        steers=AUTO in Targets(values["target"] or (), dict(values["target_for"])).named(),
        routes_namespace=values["routes_namespace"],
        selection=make_selection(values),
        kubeconfig=values["kubeconfig"],
        context=values["context"],
    )


def refuse_without_target(values: dict[str, Any]) -> None:
    """Raises StartError for sources whose names would have no answer, and for classes of no source."""
    for source, _ in values["class_of"]:
        if source not in values["source"]:
            raise StartError(f"--class-of {source}=...: there is no --source {source}")
    if values["source"] and not values["target"] and not values["target_for"]:
        raise StartError("--source needs --target: the addresses that the cluster's hostnames are answered with")
    if values["routes_namespace"] and AUTO not in Targets(values["target"] or (), dict(values["target_for"])).named():
        raise StartError(f"--routes-namespace is for --target {AUTO}")


def _other_sources(values: dict[str, Any]) -> tuple[SourceOptions, ...]:
    names = dict.fromkeys(name for name in values["source"] if name not in BUILT_IN)
    resources = Counter(resource_of(name) for name in names if name.startswith(PREFIX))
    for resource, number in resources.items():
        if number > 1:
            raise StartError(f"--source crd:{resource}: give all its paths in one value, with commas between them")
    classes = values["class_of"]
    return tuple(SourceOptions(name, frozenset(one for source, one in classes if source == name)) for name in names)
