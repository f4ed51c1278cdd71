"""Options that the commands share, and the settings that their values make.

The law: a flag's value is checked here; no other module sees its text.
"""

from __future__ import annotations

import platform
import re
from typing import Any, Final

import click

from sidecar.cli.options import CheckedType, Decorated, add_options, kubeconfig_options
from wholeip.mappings.addresses import parse_network
from wholeip.mappings.pods import Proof
from wholeip.mappings.services import DEFAULT_PROXY_NAME, LABEL
from wholeip.settings import ClusterSettings

ADMIN: Final = "127.0.0.1:8083"
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
# RFC 1123, as Kubernetes requires for names of nodes.
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NODE_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


def parse_label_value(text: str) -> str:
    """The value of a label. Raises ValueError."""
    if not _LABEL_VALUE.fullmatch(text):
        raise ValueError(f"{text!a} cannot be the value of a label: at most 63 letters, digits and -_. between them")
    return text


def parse_node_name(text: str) -> str:
    """The name of a Node. Raises ValueError."""
    if not _NODE_NAME.fullmatch(text):
        raise ValueError(f"{text!a} cannot be the name of a Node: small letters, digits, - and . between them")
    return text


def parse_namespace(text: str) -> str:
    """The name of a Namespace. Raises ValueError."""
    if not _NAMESPACE.fullmatch(text):
        raise ValueError(f"{text!a} cannot be the name of a Namespace: small letters, digits and - between them")
    return text


def parse_job(text: str) -> str:
    """`NAMESPACE/NAME` of a Job. Raises ValueError."""
    namespace, slash, name = text.partition("/")
    if not slash or not _NODE_NAME.fullmatch(name):
        raise ValueError(f"{text!a} is not NAMESPACE/NAME, such as switchback-wholeip/wholeip-removal")
    return f"{parse_namespace(namespace)}/{name}"


def own_name() -> str:
    """The kubelet's default name for this node."""
    return platform.node().lower()


def cluster_options(command: Decorated) -> Decorated:
    """The Services, the node and the cluster: the values for make_cluster."""
    network = CheckedType("network", parse_network)
    return add_options(
        command,
        click.option(
            "--proxy-name",
            type=CheckedType("name", parse_label_value),
            default=DEFAULT_PROXY_NAME,
            help=f"Serve the Services with the label {LABEL}=NAME.",
        ),
        click.option(
            "--node-name",
            type=CheckedType("name", parse_node_name),
            help="The name of this Node: its pods count as local.  [default: the hostname]",
        ),
        click.option(
            "--cluster-network",
            type=network,
            metavar="NETWORK",
            multiple=True,
            help="A network of the cluster's pods or Services, beside spec.podCIDRs and the addresses of Nodes: "
            "connections from pods to it keep the pod's address, and none of its addresses is mapped. Repeatable.",
        ),
        click.option(
            "--protect",
            type=network,
            metavar="NETWORK",
            multiple=True,
            help="Never map an address in this network, whatever a load balancer assigns. Repeatable.",
        ),
        click.option(
            "--allow",
            type=network,
            metavar="NETWORK",
            multiple=True,
            help="Map only addresses in this network, also if it is inside a --cluster-network. Repeatable.",
        ),
        click.option(
            "--endpoints",
            type=click.Choice([one.value for one in Proof]),
            default=Proof.REFERENCED.value,
            help="The endpoints that may get an address: `referenced`, with a targetRef to a Pod of the Service's "
            "namespace; `verified`, only if that Pod has the address, which takes the right to list and watch pods; "
            "`any`, also those that were written by hand.",
        ),
        kubeconfig_options(),
    )


def make_cluster(values: dict[str, Any]) -> ClusterSettings:
    """Settings from the values by the flags' names; removes those values."""
    return ClusterSettings(
        proxy_name=values.pop("proxy_name"),
        node_name=values.pop("node_name") or own_name(),
        networks=tuple(values.pop("cluster_network")),
        protected=tuple(values.pop("protect")),
        allowed=tuple(values.pop("allow")),
        endpoints=Proof(values.pop("endpoints")),
        kubeconfig=values.pop("kubeconfig"),
        context=values.pop("context"),
    )
