"""Metadata: who an object is, what it is labelled with, and who wrote it.

The law: null and an absent field are None or a default, never an error; other fields are not decoded. A struct takes
the smallest metadata that its readers need, because a list may be long.
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
"""

from __future__ import annotations

import msgspec

from sidecar.kubernetes.objects import ObjectMeta


class FieldManager(msgspec.Struct, frozen=True):
    """A client that wrote to an object, and the time of its last write."""

    manager: str | None = None
    operation: str | None = None
    time: str | None = None
    """RFC 3339 in UTC, so that it sorts as text."""
    subresource: str | None = None


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """An object that this one belongs to."""

    api_version: str
    kind: str
    name: str


class LabelledMetadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    """With labels and annotations."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Metadata(LabelledMetadata, frozen=True, gc=False, rename="camel"):
    """With everything that tells the owner of the object."""

    managed_fields: tuple[FieldManager, ...] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    uid: str = ""
