"""The ConfigMaps that hold a publication: `NAME`, then `NAME-2` and so on if one is too small.

The law: they hold the parts of a publication and nothing else, and carry the label of this publisher. A ConfigMap of
the same name without the label belongs to another writer. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from dnsproxy.admin.publication import Publication, format_document, parse_document
from dnsproxy.publish.parts import Part, count_parts, join_parts, split_document

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "switchback-publish"


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    labels: dict[str, str] | None = None


class StoredMap(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a ConfigMap that are read."""

    metadata: _Metadata
    binary_data: dict[str, str] | None = None

    @property
    def version(self) -> str:
        """The resourceVersion."""
        return self.metadata.resource_version

    @property
    def is_ours(self) -> bool:
        """Whether it has our label."""
        return (self.metadata.labels or {}).get(MANAGED_BY) == MANAGER

    def parts(self) -> list[Part]:
        """Its entries, as parts. Raises ValueError."""
        try:
            return [Part(key, base64.b64decode(value)) for key, value in (self.binary_data or {}).items()]
        except binascii.Error as error:
            raise ValueError(str(error)) from None


@dataclass(frozen=True, slots=True)
class MapName:
    """The namespace and name of the first ConfigMap."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def numbered(self, number: int) -> MapName:
        """The name for the part of this number, from 1."""
        return self if number == 1 else MapName(self.namespace, f"{self.name}-{number}")

    @property
    def path(self) -> str:
        """The path on the API server."""
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/configmaps/{quote(self.name, safe='')}"


def parse_map(body: bytes) -> StoredMap:
    """A ConfigMap from the API server's JSON. Raises ValueError."""
    return msgspec.json.decode(body, type=StoredMap)


def stored_publication(maps: Iterable[StoredMap]) -> Publication | None:
    """The publication that the ConfigMaps hold; None if it is not whole."""
    try:
        return parse_document(join_parts(part for one in maps for part in one.parts()))
    except ValueError:
        return None


def parts_wanted(publication: Publication) -> list[Part]:
    """The parts, one for each ConfigMap. Raises ValueError for a publication that is too large."""
    return split_document(format_document(publication).octets)


def parts_stored(one: StoredMap) -> int:
    """How many parts the publication has, by the part that this ConfigMap holds; 0 if it holds none."""
    return max((count_parts(key) for key in one.binary_data or {}), default=0)


def make_manifest(name: MapName, part: Part) -> Mapping[str, Any]:
    """The ConfigMap that holds one part."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name.name, "namespace": name.namespace, "labels": {MANAGED_BY: MANAGER}},
        "binaryData": {part.key: base64.b64encode(part.octets).decode("ascii")},
    }
