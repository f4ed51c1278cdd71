"""Objects: the few fields of a Kubernetes object that list and watch need, whatever its kind.

The law: a struct holds only fields that are used, because a cluster may hold 100,000 of them, and it takes null for
every list and every optional field, because Go writes an empty slice so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The part of meta/v1 ObjectMeta that identifies an object; kinds that need annotations extend it."""

    name: str
    namespace: str | None = None
    resource_version: str = ""
    creation_timestamp: str | None = None
    """RFC 3339 in UTC, so that it sorts as text."""


class Resource(Protocol):
    """What every kind that can be followed has."""

    @property
    def metadata(self) -> ObjectMeta:
        """Who the object is."""
        ...


T = TypeVar("T", bound=Resource)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that is there but whose fields are not of the types its kind promises."""

    metadata: ObjectMeta
    reason: str


@dataclass(frozen=True, slots=True)
class Collection(Generic[T]):
    """All objects of one kind in the cluster (or in one namespace, if the path says so)."""

    kind: str
    """As people say it: `Ingress`."""
    path: str
    """As the API server knows it: `/apis/networking.k8s.io/v1/ingresses`."""
    type: type[T]
    """The struct that an object is decoded into."""
    label_selector: str = ""
    field_selector: str = ""
    optional: bool = False
    """Whether a collection that RBAC does not let us see counts as empty, instead of holding up the first sync."""
    discovered: bool = False
    """Whether somebody asks the server which kinds it has: then a 404 here is a failure like any other, and what is
    known stays; else it is an empty list."""


def key_of(metadata: ObjectMeta) -> str:
    """`NAMESPACE/NAME`, or `NAME` for what has no namespace: unique among the living objects of one kind."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
