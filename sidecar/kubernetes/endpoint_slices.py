"""EndpointSlices: which pods stand behind a Service, and what is said of each.

The law: pure. What a condition that nobody stated means is decided here once; who counts is the readers' business.
https://kubernetes.io/docs/reference/kubernetes-api/service-resources/endpoint-slice-v1/
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from sidecar.kubernetes.objects import ObjectMeta

PATH: Final = "/apis/discovery.k8s.io/v1/endpointslices"
"""Those of all namespaces."""
SERVICE_NAME: Final = "kubernetes.io/service-name"
"""The label with the name of the Service, in the slice's own namespace."""
FAMILIES: Final = frozenset({"IPv4", "IPv6"})
"""The third address type, FQDN, has no use anybody agreed on and is deprecated."""


class Condition(StrEnum):
    """Whether an endpoint takes connections, in the words of a message."""

    READY = "ready"
    NOT_READY = "not ready"
    TERMINATING = "terminating"
    """On its way out; ready all the same where the Service publishes addresses that are not."""


class Labels(msgspec.Struct, frozen=True, gc=False):
    """The one that counts."""

    service_name: str | None = msgspec.field(default=None, name=SERVICE_NAME)


class SliceMeta(ObjectMeta, frozen=True, gc=False):
    """Which Service the slice belongs to."""

    labels: Labels | None = None


class Conditions(msgspec.Struct, frozen=True, gc=False):
    """As the API server has them; what is absent or null is unknown."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class SliceEndpoint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One pod, mostly."""

    addresses: tuple[str, ...] | None = None
    conditions: Conditions | None = None
    node_name: str | None = None


class SlicePort(msgspec.Struct, frozen=True, gc=False):
    """A port that all endpoints of a slice have; a pod may call it by another number than its neighbour."""

    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Some of the pods behind a Service, all with the same ports."""

    metadata: SliceMeta
    address_type: str = ""
    endpoints: tuple[SliceEndpoint, ...] | None = None
    ports: tuple[SlicePort, ...] | None = None


def condition_of(endpoint: SliceEndpoint) -> Condition:
    """What the conditions of an endpoint add up to (KEP-1672)."""
    conditions = endpoint.conditions or Conditions()
    if conditions.terminating:
        return Condition.TERMINATING
    # Unknown is to be taken for ready.
    return Condition.NOT_READY if conditions.ready is False else Condition.READY
