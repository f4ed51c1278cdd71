"""Providers: the vendor of a load balancer, and whether it sends the PROXY header.

The law: a provider is recognised by the class of the load balancer, then by annotations, then by the nodes' providerID.
A controller leaves Services of another class alone (core/v1 ServiceSpec.loadBalancerClass), so that neither stale
annotations nor the nodes count beside it. Tested in tests/dnsproxy/doctor/judge/test_providers.py.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.header_annotations import Sends, read_switches
from dnsproxy.doctor.judge.provider import Provider
from dnsproxy.doctor.judge.provider_rows.announcers import CILIUM_LB, KUBE_VIP, METALLB
from dnsproxy.doctor.judge.provider_rows.hosters import (
    CIVO,
    DIGITAL_OCEAN,
    EXOSCALE,
    HETZNER,
    LINODE,
    SCALEWAY,
    UPCLOUD,
    VULTR,
)
from dnsproxy.doctor.judge.provider_rows.hyperscalers import ALIBABA, AWS, AZURE, GOOGLE, ORACLE
from dnsproxy.doctor.judge.provider_rows.platforms import CLOUD_STACK, OPENSTACK, OUTSCALE, OVH, STACKIT

__all__ = ["ANNOTATION_MARKS", "AWS", "PROVIDERS", "UNKNOWN", "Provider", "provider_of", "sends"]

UNKNOWN: Final = Provider("an unknown provider")

PROVIDERS: Final = (
    HETZNER, DIGITAL_OCEAN, SCALEWAY, LINODE, VULTR, CIVO, UPCLOUD, STACKIT, ORACLE, OVH, OPENSTACK, EXOSCALE, ALIBABA,
    CLOUD_STACK, OUTSCALE, AWS, AZURE, GOOGLE, METALLB, KUBE_VIP, CILIUM_LB,
)  # fmt: skip
"""The first whose mark is present counts: OVH and STACKIT before OpenStack, Outscale before AWS."""

ANNOTATION_MARKS: Final = tuple(mark for provider in PROVIDERS for mark in provider.marks)
"""Prefixes of annotations about load balancers; other annotations never enter the facts."""

_EVERYWHERE: Final = frozenset({"service.beta.kubernetes.io/aws-load-balancer-backend-protocol"})
"""Annotations that manifests for every cloud have, such as Contour's own: they show no vendor."""
_BY_CLASS: Final = MappingProxyType({name: one for one in PROVIDERS for name in one.classes})
_BY_SCHEME: Final = MappingProxyType({scheme: one for one in PROVIDERS for scheme in one.schemes})


def provider_of(service: Service, scheme: str = "") -> Provider:
    """The provider of a Service's load balancer; `scheme` is that of the nodes' providerID."""
    for beginning, provider in _BY_CLASS.items():
        if service.load_balancer_class.startswith(beginning):
            return provider
    for provider in PROVIDERS:
        if any(key.startswith(mark) for key in service.annotations.keys() - _EVERYWHERE for mark in provider.marks):
            return provider
    return UNKNOWN if service.load_balancer_class else _BY_SCHEME.get(scheme, UNKNOWN)


def sends(provider: Provider, service: Service) -> Sends:
    """Whether a Service's load balancer is set to send the header."""
    said = read_switches(provider.switches_of(service), service)
    if said is not None or provider.never_sends:
        return said or Sends.NO
    # Without an annotation most providers do not send it; some have a setting for the whole cluster elsewhere.
    return Sends.UNKNOWN if provider.elsewhere or not provider.switches else Sends.NO
