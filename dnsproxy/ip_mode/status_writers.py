"""Who wrote a Service's load balancer status, by its managed fields.

The law: only fields below status.loadBalancer count, and the newest writer is first. Times have whole seconds. Pure.
https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from sidecar.kubernetes.structs.metadata import FieldManager, LabelledMetadata
from sidecar.kubernetes.structs.network import ServiceSpec, ServiceStatus

_FIELD: Final = b'"f:loadBalancer"'


class ManagedFields(FieldManager, frozen=True, rename="camel"):
    """A client with the fields that it wrote."""

    fields_v1: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="fieldsV1")


class ManagedMetadata(LabelledMetadata, frozen=True, gc=False, rename="camel"):
    """With the writers of the object, and its uid."""

    managed_fields: tuple[ManagedFields, ...] | None = None
    uid: str = ""


class ManagedService(msgspec.Struct, frozen=True):
    """A Service with the writers of its fields."""

    metadata: ManagedMetadata
    spec: ServiceSpec | None = None
    status: ServiceStatus | None = None


@dataclass(frozen=True, slots=True)
class StatusWriter:
    """One client that wrote the status."""

    manager: str
    operation: str
    """`Update` or `Apply`."""
    time: str
    """Of its last write: RFC 3339 in UTC."""


def status_writers(fields: Sequence[ManagedFields] | None) -> tuple[StatusWriter, ...]:
    """The writers of status.loadBalancer, the newest first; of two in one second, the later entry."""
    found = [
        StatusWriter(one.manager or "an unnamed client", one.operation or "Update", one.time or "")
        for one in fields or ()
        if one.subresource == "status" and _FIELD in bytes(one.fields_v1)
    ]
    newest_last = sorted(found, key=lambda one: one.time)
    return tuple(newest_last[::-1])
