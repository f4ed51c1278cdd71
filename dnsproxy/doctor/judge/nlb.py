"""Network load balancers of AWS: whether one may return a connection to the node that it came from.

The law: a target that sees the client's own address drops a connection of its own node. Targets see it by default for
instance targets, not for IP targets of TCP:
https://docs.aws.amazon.com/elasticloadbalancing/latest/network/edit-target-group-attributes.html
"""

from __future__ import annotations

from typing import Final

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.provider import Provider
from dnsproxy.doctor.judge.provider_rows.hyperscalers import AWS, NETWORK_KINDS

_BETA: Final = "service.beta.kubernetes.io/aws-load-balancer-"
ATTRIBUTES: Final = f"{_BETA}target-group-attributes"
_PRESERVE: Final = "preserve_client_ip.enabled="


def returns_connections(provider: Provider, service: Service) -> bool:
    """Whether a Service's load balancer is such a one."""
    return provider is AWS and AWS.kind_of(service) in NETWORK_KINDS and _keeps_client(service)


def _keeps_client(service: Service) -> bool:
    annotations = service.annotations
    attributes = annotations.get(ATTRIBUTES, "").replace(" ", "")
    if _PRESERVE in attributes:
        return f"{_PRESERVE}true" in attributes
    by_ip = annotations.get(f"{_BETA}nlb-target-type") == "ip" or annotations.get(f"{_BETA}type") == "nlb-ip"
    return not by_ip
