"""The flags of `dnsproxy serve` that say with which addresses the cluster's hostnames are answered, and who may choose.

The law: as in command.py; what a target is, and what a right, is said in hostnames/targets.py and rights.py.
"""

from __future__ import annotations

import click

from dnsproxy.cluster_dns.options import OBJECT_REF
from dnsproxy.hostnames.rights import Annotations, parse_network
from dnsproxy.hostnames.targets import parse_target
from sidecar.cli.options import CheckedType, Decorated, add_options


def parse_target_for(text: str) -> tuple[str, tuple[str, ...]]:
    """`CLASS=TARGET`; the class of an Istio Gateway is its selector. Raises ValueError."""
    # No target has an equals sign, but an Istio selector does: istio=ingressgateway.
    name, equals, target = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"{text!a} is not CLASS=TARGET, for example internal=192.0.2.20")
    return name, split_target(target)


def split_target(text: str) -> tuple[str, ...]:
    """A target in the form of Targets: addresses, `service:NAMESPACE/NAME`, `status` or `auto`. Raises ValueError."""
    return tuple(parse_target(text, auto=True).split(","))


def target_options(command: Decorated) -> Decorated:
    """--target and --target-for, --routes-namespace, --annotations and what those may name."""
    return add_options(
        command,
        click.option(
            "--target",
            type=CheckedType("target", split_target),
            metavar="IP[,IP]|service:NS/NAME|status|auto",
            help="The addresses that the cluster's hostnames are answered with: literal ones, those of a Service (the "
            "relay), those in each object's own status, or `auto`: those of the Service in --routes-namespace with the "
            "annotation switchback.dev/for: ingressclass/NAME or gateway/NS/NAME. Names of other classes and Gateways "
            "are forwarded.",
        ),
        click.option(
            "--routes-namespace",
            metavar="NAMESPACE",
            help="Where the Services for the target `auto` are.  [default: the pod's own, or that of the kubeconfig's "
            "context]",
        ),
        click.option(
            "--target-for",
            type=CheckedType("class=target", parse_target_for),
            metavar="CLASS=TARGET",
            multiple=True,
            help="The same for one ingress class, gateway class or Istio selector (istio=ingressgateway=192.0.2.20).",
        ),
        click.option(
            "--annotations",
            type=click.Choice([one.value for one in Annotations]),
            default=Annotations.LABELLED.value,
            help="Where the annotations switchback.dev/hostname and /target count: nowhere; in namespaces with the "
            "label switchback.dev/annotations=allowed; everywhere.",
        ),
        click.option(
            "--target-service",
            type=OBJECT_REF,
            metavar="NAMESPACE/NAME",
            multiple=True,
            help="A Service that the annotation switchback.dev/target may name from any namespace.",
        ),
        click.option(
            "--target-network",
            type=CheckedType("network", parse_network),
            metavar="NETWORK",
            multiple=True,
            help="The annotation switchback.dev/target may name addresses within this network, beside Services of its "
            "namespace.",
        ),
    )
