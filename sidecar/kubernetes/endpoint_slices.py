"""EndpointSlices: the pods of a Service, and their conditions.

The law: pure. This module decides the meaning of an absent condition; endpoint_choice.py, which endpoints are used.
https://kubernetes.io/docs/reference/kubernetes-api/service-resources/endpoint-slice-v1/
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from sidecar.kubernetes.objects import ObjectMeta

PATH: Final = "/apis/discovery.k8s.io/v1/endpointslices"
"""The EndpointSlices of all namespaces."""
SERVICE_NAME: Final = "kubernetes.io/service-name"
"""The label with the name of the Service, in the slice's own namespace."""
FAMILIES: Final = frozenset({"IPv4", "IPv6"})
"""The third address type, FQDN, has no defined use and is deprecated."""


class Condition(StrEnum):
    """Whether an endpoint takes connections, in the words of a message."""

    READY = "ready"
    NOT_READY = "not ready"
    LEAVING = "terminating and still serving"
    """Shutting down, and still able to answer. Also `ready` in the API if the Service publishes addresses that are not
    ready."""
    TERMINATING = "terminating"
    """Shutting down, and no longer serving."""


class Labels(msgspec.Struct, frozen=True, gc=False):
    """The label with the Service."""

    service_name: str | None = msgspec.field(default=None, name=SERVICE_NAME)


class SliceMeta(ObjectMeta, frozen=True, gc=False):
    """Metadata with the Service that the slice belongs to."""

    labels: Labels | None = None


class Conditions(msgspec.Struct, frozen=True, gc=False):
    """As in the API; absent and null are unknown."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class TargetRef(msgspec.Struct, frozen=True, gc=False):
    """The object that an endpoint belongs to. The writer of the slice chose it; the API server does not check it."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None


class SliceEndpoint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Usually one pod."""

    addresses: tuple[str, ...] | None = None
    conditions: Conditions | None = None
    node_name: str | None = None
    target_ref: TargetRef | None = None


class SlicePort(msgspec.Struct, frozen=True, gc=False):
    """A port of all endpoints of a slice; pods with another number for it are in another slice."""

    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Some of the pods of a Service, all with the same ports."""

    metadata: SliceMeta
    address_type: str = ""
    endpoints: tuple[SliceEndpoint, ...] | None = None
    ports: tuple[SlicePort, ...] | None = None


def condition_of(endpoint: SliceEndpoint) -> Condition:
    """The conditions of an endpoint in one word (KEP-1672)."""
    conditions = endpoint.conditions or Conditions()
    # The API says: treat unknown as ready, and unknown serving as ready.
    ready = conditions.ready is not False
    if not conditions.terminating:
        return Condition.READY if ready else Condition.NOT_READY
    serving = ready if conditions.serving is None else conditions.serving or conditions.ready
    return Condition.LEAVING if serving else Condition.TERMINATING
