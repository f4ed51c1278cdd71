"""The ConfigMaps that hold a publication: a name, and `NAME-2` and so on where one is too small.

The law: they hold parts of ours and nothing else, under a label that says whose they are; what is there by a name of
ours without that label is somebody else's. Pure.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from dnsproxy.admin.publication import Publication, format_document, parse_document
from dnsproxy.publish.parts import Part, count_parts, join_parts, split_document

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "switchback-publish"
NEVER_READ: Final = "1"
"""A resourceVersion that no object has: an apply with it makes an object, or fails where there is one already."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    labels: dict[str, str] | None = None


class StoredMap(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of a ConfigMap."""

    metadata: _Metadata
    binary_data: dict[str, str] | None = None

    @property
    def version(self) -> str:
        """Its resourceVersion."""
        return self.metadata.resource_version

    @property
    def is_ours(self) -> bool:
        """Whether it says so."""
        return (self.metadata.labels or {}).get(MANAGED_BY) == MANAGER

    def parts(self) -> list[Part]:
        """What it holds. Raises ValueError."""
        try:
            return [Part(key, base64.b64decode(value)) for key, value in (self.binary_data or {}).items()]
        except binascii.Error as error:
            raise ValueError(str(error)) from None


@dataclass(frozen=True, slots=True)
class MapName:
    """A ConfigMap's namespace and name, as the first of a row."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def numbered(self, number: int) -> MapName:
        """The one of a part, from 1."""
        return self if number == 1 else MapName(self.namespace, f"{self.name}-{number}")

    @property
    def path(self) -> str:
        """As the API server knows it."""
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/configmaps/{quote(self.name, safe='')}"


def parse_map(body: bytes) -> StoredMap:
    """A ConfigMap as the API server gives it. Raises ValueError."""
    return msgspec.json.decode(body, type=StoredMap)


def stored_publication(maps: Iterable[StoredMap]) -> Publication | None:
    """What ConfigMaps hold together; None where that is no whole publication."""
    try:
        return parse_document(join_parts(part for one in maps for part in one.parts()))
    except ValueError:
        return None


def parts_wanted(publication: Publication) -> list[Part]:
    """The parts, one for each ConfigMap. Raises ValueError for a publication that is too large."""
    return split_document(format_document(publication).octets)


def parts_stored(one: StoredMap) -> int:
    """How many parts the publication has of which this holds one; 0 where it holds none."""
    return max((count_parts(key) for key in one.binary_data or {}), default=0)


def apply_body(name: MapName, part: Part, *, version: str) -> bytes:
    """The apply that makes a ConfigMap hold one part; it counts only for the version that was read."""
    metadata: Mapping[str, Any] = {
        "name": name.name,
        "namespace": name.namespace,
        "labels": {MANAGED_BY: MANAGER},
        "resourceVersion": version,
    }
    data = {part.key: base64.b64encode(part.octets).decode("ascii")}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data}).encode()


def delete_body(version: str) -> bytes:
    """The deletion of a ConfigMap that is still the one that was read."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": version}}
    return json.dumps(options).encode()
