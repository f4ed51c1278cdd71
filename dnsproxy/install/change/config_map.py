"""The change of one ConfigMap: some keys, some annotations, and nothing else of it, in one write.

The law: a write counts only for the version that was read (Kubernetes' resourceVersion), so of two writers one has to
look again; keys that are not named stay as they are, whoever writes them meanwhile. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from dnsproxy.cluster_dns.found import Source
from dnsproxy.cluster_dns.owner import OUR_MANAGER
from sidecar.values.diffs import format_diff

MADE: Final = "switchback.dev/made"
"""The annotation with what was not there before: words of the two below."""
OBJECT: Final = "object"
"""The ConfigMap itself: it goes with the last of its keys."""

_NEVER_READ: Final = "1"
"""A resourceVersion that no object has: an apply with it makes an object, or fails where there is one already. Unlike a
POST it can be granted for one name alone."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key or an annotation: what it is and what it is to be, None for none."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class ConfigMapChange:
    """What is to become of one ConfigMap."""

    source: Source
    data: tuple[Entry, ...]
    annotations: tuple[Entry, ...] = ()
    removes: bool = False
    """Whether the ConfigMap itself goes, because it was made for us and nothing else is in it."""

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return any(entry.old != entry.new for entry in (*self.data, *self.annotations))

    @property
    def verb(self) -> str:
        """What RBAC has to allow; to create is to patch as well."""
        if self.removes:
            return "delete"
        return "patch" if self.source.exists else "create"


@dataclass(frozen=True, slots=True)
class Write:
    """The request that makes a change."""

    method: str
    path: str
    params: Mapping[str, str]
    content: bytes
    content_type: str


def make_write(change: ConfigMapChange) -> Write:
    """The one request for a change; the API server answers 409 where the object is no longer the one that was read."""
    source = change.source
    path = f"/api/v1/namespaces/{quote(source.namespace, safe='')}/configmaps/{quote(source.name, safe='')}"
    params = {"fieldManager": OUR_MANAGER}
    if change.removes:
        preconditions = {"resourceVersion": source.resource_version}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        return Write("DELETE", path, {}, _encode(body), "application/json")
    metadata: dict[str, Any] = {"resourceVersion": source.resource_version or _NEVER_READ}
    if annotations := _changed(change.annotations):
        metadata["annotations"] = annotations
    body = {"metadata": metadata}
    if data := _changed(change.data):
        body["data"] = data
    if source.exists:
        return Write("PATCH", path, params, _encode(body), "application/merge-patch+json")
    metadata |= {"name": source.name, "namespace": source.namespace}
    body |= {"apiVersion": "v1", "kind": "ConfigMap"}
    return Write("PATCH", path, params, _encode(body), "application/apply-patch+yaml")


def format_change(change: ConfigMapChange) -> str:
    """The unified diff of a change, a file for each key and one for the annotations; empty where nothing changes."""
    name = f"{change.source.namespace}/{change.source.name}"
    diffs = [format_diff(entry.old or "", entry.new or "", f"{name}/{entry.name}") for entry in change.data]
    old, new = (_lines(change.annotations, old=old) for old in (True, False))
    return "".join([*diffs, format_diff(old, new, f"{name}/metadata.annotations")])


def keys_left(change: ConfigMapChange) -> set[str]:
    """The keys of the ConfigMap once the change is made."""
    found = change.source.object
    there = {*(found.data or {}), *(found.binary_data or {})} if found else set()
    gone = {entry.name for entry in change.data if entry.new is None}
    return (there | {entry.name for entry in change.data}) - gone


def annotations_of(source: Source) -> Mapping[str, str]:
    """The annotations of a ConfigMap; none where it is not there."""
    return (source.object.metadata.annotations if source.object else None) or {}


def data_of(source: Source) -> Mapping[str, str]:
    """The texts of a ConfigMap; none where it is not there."""
    return (source.object.data if source.object else None) or {}


def words_made(source: Source) -> list[str]:
    """What of a ConfigMap was made for us."""
    return annotations_of(source).get(MADE, "").split()


def made_entry(source: Source, words: Iterable[str]) -> Entry:
    """The annotation that says what was made for us; none where nothing was."""
    return Entry(MADE, annotations_of(source).get(MADE), " ".join(dict.fromkeys(words)) or None)


def _changed(entries: Iterable[Entry]) -> dict[str, str | None]:
    return {entry.name: entry.new for entry in entries if entry.old != entry.new}


def _encode(body: Mapping[str, Any]) -> bytes:
    # JSON is YAML too.
    return json.dumps(body).encode()


def _lines(entries: Iterable[Entry], *, old: bool) -> str:
    values = [(entry.name, entry.old if old else entry.new) for entry in entries]
    return "".join(f"{name}: {value}\n" for name, value in values if value is not None)
