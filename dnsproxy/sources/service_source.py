"""The Service source: hostnames that no Ingress and no route serves, such as those of Git over SSH or MQTT.

The law: pure; a Service claims only the hostnames of its annotation `switchback.dev/hostname`; without it, it costs
nothing. Its names have the default target, because the Service is a backend of the same load balancer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.hostnames.claims import Claim, Rejection, Terms, share_terms
from dnsproxy.hostnames.wildcards import reach_in_dns
from dnsproxy.sources.annotations import AnnotatedMetadata, origin_of, read_annotations, rejections_of
from dnsproxy.sources.load_balancer import BalancedStatus, points_of
from dnsproxy.sources.unreadable import rejection_of_unreadable
from sidecar.kubernetes.objects import Collection, Unreadable

SOURCE: Final = "Service"


class AnnotatedService(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Service that decide its claims: fewer than in sidecar, because all Services are read."""

    metadata: AnnotatedMetadata
    status: BalancedStatus | None = None


SERVICES: Final = Collection("Service", "/api/v1/services", AnnotatedService)
"""In all namespaces. RBAC: list and watch services."""


def claims_of(service: AnnotatedService) -> tuple[list[Claim], list[Rejection]]:
    """A claim for each hostname of its annotation, and a rejection for each invalid or excluded one."""
    annotations = read_annotations(service.metadata)
    if not annotations.hostnames and not annotations.bad_hostnames:
        return [], []
    origin = origin_of(SOURCE, service.metadata)
    rejections = [Rejection(origin, fault) for fault in (*annotations.faults, *annotations.bad_hostnames)]
    if annotations.exclusion is not None:
        return [], rejections + rejections_of(origin, annotations, annotations.hostnames)
    status = points_of(service.status)
    return [
        Claim(
            name,
            reach_in_dns(name),
            origin,
            share_terms(Terms(target=annotations.target, status=status, annotated=True)),
        )
        for name in annotations.hostnames
    ], rejections


class ServiceSource:
    """Feeds one ClaimSink with the claims of Services."""

    def __init__(self, store: ClaimSink) -> None:
        self._store = store

    def change(self, changes: Mapping[str, AnnotatedService | Unreadable | None]) -> frozenset[str]:
        """Apply changes, by `NAMESPACE/NAME`. Returns the hostnames whose claims changed."""
        touched: set[str] = set()
        for key, service in changes.items():
            touched |= self._store.replace(SOURCE, key, *_contribution(service))
        return frozenset(touched)


def _contribution(service: AnnotatedService | Unreadable | None) -> tuple[list[Claim], list[Rejection]]:
    if service is None:
        return [], []
    if isinstance(service, Unreadable):
        return [], [rejection_of_unreadable(SOURCE, service)]
    return claims_of(service)
