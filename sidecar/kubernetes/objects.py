"""Objects: the fields that list and watch need of a Kubernetes object of any kind.

The law: a struct has only fields that are used, because a cluster may have 100,000 objects. It accepts null for every
list and every optional field, because Go writes an empty slice as null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from sidecar.kubernetes.selector import Selector


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The part of meta/v1 ObjectMeta that identifies an object; kinds that need annotations extend it."""

    name: str
    namespace: str | None = None
    resource_version: str = ""
    creation_timestamp: str | None = None
    """RFC 3339 in UTC, so that it sorts as text."""


class Resource(Protocol):
    """An object of any kind that can be followed."""

    @property
    def metadata(self) -> ObjectMeta:
        """The identity of the object."""
        ...


T = TypeVar("T", bound=Resource)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that exists, but has fields of a wrong type."""

    metadata: ObjectMeta
    reason: str


@dataclass(frozen=True, slots=True)
class Collection(Generic[T]):
    """All objects of one kind in the cluster, or in the namespace of the path."""

    kind: str
    """For people: `Ingress`."""
    path: str
    """For the API server: `/apis/networking.k8s.io/v1/ingresses`."""
    type: type[T]
    """The struct that an object is decoded into."""
    label_selector: str = ""
    field_selector: str = ""
    annotation_selector: Selector | None = None
    """Which objects count. The API server cannot select by annotations: the others are read, and count as absent."""
    optional: bool = False
    """Whether a collection that RBAC hides counts as empty, instead of delaying the first sync."""
    discovered: bool = False
    """Whether the program asks the server which kinds it has. Then a 404 is a failure like any other and known objects
    stay; otherwise it is an empty list."""


def key_of(metadata: ObjectMeta) -> str:
    """`NAMESPACE/NAME`, or `NAME` without a namespace: unique among the existing objects of one kind."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
