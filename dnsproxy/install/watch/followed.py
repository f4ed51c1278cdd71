"""Which collections a watcher follows, and which of their changes matter.

The law: a watcher follows everything that discovery read; an object that was read by name is followed by name, so that
RBAC can be limited to it. Changes of status, managedFields and leases do not matter. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from dnsproxy.cluster_dns.requests import INGRESS, Request
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable


class WatchedMeta(ObjectMeta, frozen=True, rename="camel"):
    """Metadata with annotations, where an install leaves its marks."""

    annotations: dict[str, str] | None = None


class Watched(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of any followed kind that a plan may depend on, as raw JSON."""

    metadata: WatchedMeta
    data: msgspec.Raw = msgspec.Raw(b"")
    binary_data: msgspec.Raw = msgspec.Raw(b"")
    immutable: bool | None = None
    spec: msgspec.Raw = msgspec.Raw(b"")
    endpoints: msgspec.Raw = msgspec.Raw(b"")


def followed(asked: Iterable[Request]) -> tuple[Request, ...]:
    """The requests to follow: all but the Ingresses, of which a cluster may have 100,000."""
    return tuple(dict.fromkeys(request for request in asked if request.kind is not INGRESS))


def collection_of(request: Request) -> Collection[Watched]:
    """The collection with the objects of a request."""
    listed = Request(request.kind, request.namespace)
    selector = f"metadata.name={request.name}" if request.name is not None else ""
    return Collection(
        request.kind.name, listed.path, Watched, label_selector=request.label_selector, field_selector=selector
    )


class Differences:
    """Separates changes that matter from others."""

    def __init__(self) -> None:
        self._seen: dict[str, bytes] = {}

    def take(self, changes: Mapping[str, Watched | Unreadable | None]) -> bool:
        """Whether anything that matters has changed."""
        # All are stored, also those after the first difference.
        return sum(self._differs(key, value) for key, value in changes.items()) > 0

    def _differs(self, key: str, value: Watched | Unreadable | None) -> bool:
        if value is None:
            return self._seen.pop(key, None) is not None
        digest = _digest(value)
        before, self._seen[key] = self._seen.get(key), digest
        return before != digest


def _digest(value: Watched | Unreadable) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in _parts(value):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def _parts(value: Watched | Unreadable) -> Iterator[bytes]:
    if isinstance(value, Unreadable):
        yield value.reason.encode()
        return
    annotations: Mapping[str, Any] = value.metadata.annotations or {}
    yield repr(sorted(annotations.items())).encode()
    yield repr(value.immutable).encode()
    for raw in (value.data, value.binary_data, value.spec, value.endpoints):
        yield bytes(raw)
