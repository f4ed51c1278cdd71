"""Kinds: the objects that external-dns reads and that are followed here.

The law: values only. A kind's name is unique among all sources, and differs from that of the same objects elsewhere.
Tested in test_source.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dnsproxy.sources.external_dns import structs
from dnsproxy.sources.external_dns.dns_endpoint import SOURCE as DNS_ENDPOINT
from dnsproxy.sources.external_dns.dns_endpoint import DnsEndpoint
from dnsproxy.sources.gateway.kinds import GROUP as GATEWAY_GROUP
from dnsproxy.sources.ingress import INGRESS_CLASSES
from dnsproxy.sources.watched_kinds import WatchedKind

SERVICE: Final = "external-dns Service"
INGRESS: Final = "external-dns Ingress"
GATEWAY: Final = "external-dns Gateway"
SLICE: Final = "external-dns EndpointSlice"

CLAIMING: Final = (SERVICE, INGRESS, GATEWAY)
"""The kinds with claims of their own."""

HEADLESS: Final = "service.kubernetes.io/headless"
"""The label that the API server's controller gives to the EndpointSlices of a headless Service, and to no others:
https://kubernetes.io/docs/reference/labels-annotations-taints/#servicekubernetesioheadless"""

WATCHED: Final = (
    WatchedKind(SERVICE, "", ("v1",), "services", structs.Service),
    WatchedKind(INGRESS, "networking.k8s.io", ("v1",), "ingresses", structs.Ingress),
    WatchedKind(GATEWAY, GATEWAY_GROUP, ("v1", "v1beta1"), "gateways", structs.Gateway),
    WatchedKind(
        SLICE,
        "discovery.k8s.io",
        ("v1",),
        "endpointslices",
        structs.EndpointSlice,
        names_hosts=False,
        label_selector=HEADLESS,
    ),
)
"""RBAC: list and watch each of them; a kind that is hidden claims nothing."""
ENDPOINTS: Final = (WatchedKind(DNS_ENDPOINT, "externaldns.k8s.io", ("v1alpha1",), "dnsendpoints", DnsEndpoint),)
"""RBAC: list and watch them."""
CLASSES: Final = replace(INGRESS_CLASSES, kind="external-dns IngressClass")
"""For Ingresses that name no class."""
BESIDE: Final = (CLASSES,)
