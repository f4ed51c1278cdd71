"""The Service source: hostnames for what no Ingress and no route serves, such as Git over SSH or MQTT.

The law: a Service claims what its mark `switchback.dev/hostname` says and nothing else; without one it costs nothing.
Pure. Its names point where all others do, because the Service stands behind the same load balancer.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Final

import msgspec

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Rejection
from dnsproxy.hostnames.wildcards import reach_in_dns
from dnsproxy.sources.annotations import MarkedMetadata, read_marks
from dnsproxy.sources.load_balancer import BalancedStatus, points_of
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable

SOURCE: Final = "Service"


class MarkedService(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Service that say which hostnames it is answered for."""

    metadata: MarkedMetadata
    status: BalancedStatus | None = None


SERVICES: Final = Collection("Service", "/api/v1/services", MarkedService)
"""In all namespaces. RBAC: list and watch services."""


def claims_of(service: MarkedService) -> tuple[list[Claim], list[Rejection]]:
    """A claim for each hostname of its mark, and a rejection for each that is none or that it does not get."""
    marks = read_marks(service.metadata)
    if not marks.hostnames and not marks.bad_hostnames:
        return [], []
    origin = origin_of(service.metadata)
    rejections = [Rejection(origin, fault) for fault in (*marks.faults, *marks.bad_hostnames)]
    if marks.bar is not None:
        rejections += [Rejection(origin, f"{name}: it {marks.bar}", marks.ignored) for name in marks.hostnames]
        return [], rejections
    status = points_of(service.status)
    return [
        Claim(name, reach_in_dns(name), origin, target=marks.target, status=status) for name in marks.hostnames
    ], rejections


def origin_of(metadata: ObjectMeta) -> Origin:
    """Where the claims of a Service come from."""
    return Origin("Service", metadata.name, intern(metadata.namespace or ""), metadata.creation_timestamp or "")


class ServiceSource:
    """Feeds one ClaimStore with the claims of Services."""

    def __init__(self, store: ClaimStore) -> None:
        self._store = store

    def change(self, changes: Mapping[str, MarkedService | Unreadable | None]) -> frozenset[str]:
        """Take changes in, by `NAMESPACE/NAME`. The hostnames whose claims changed."""
        touched: set[str] = set()
        for key, service in changes.items():
            touched |= self._store.replace(SOURCE, key, *_contribution(service))
        return frozenset(touched)


def _contribution(service: MarkedService | Unreadable | None) -> tuple[list[Claim], list[Rejection]]:
    if service is None:
        return [], []
    if isinstance(service, Unreadable):
        return [], [Rejection(origin_of(service.metadata), f"unreadable: {service.reason}")]
    return claims_of(service)
