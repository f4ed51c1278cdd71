"""Edits of ConfigMaps: some keys and annotations of each, one write for each, and nothing else.

The law: a write is valid only for the version that was read (Kubernetes' resourceVersion), so of two concurrent writers
one has to read again. Keys that an edit does not name keep their values. Each ConfigMap is written completely or not at
all, in the order of the edits, so that the cluster's DNS works after an interruption between two writes. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from urllib.parse import quote

from dnsproxy.cluster_dns.found import Source
from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.owner import OUR_MANAGER
from dnsproxy.install.change.rewrite_choice import ChosenRewrites, LiveRewrites
from sidecar.values.diffs import format_diff
from sidecar.values.endpoints import Endpoint

MADE: Final = "switchback.dev/made"
"""The annotation that lists what the install created: OBJECT, and the words of stub_domains.py."""
OBJECT: Final = "object"
"""The ConfigMap itself: an uninstall deletes it together with its last key."""

_NEVER_READ: Final = "1"
"""A resourceVersion that no object has: an apply with it creates the object, or fails if the object exists. Unlike
POST, RBAC can grant it for a single name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key or an annotation: its value before and after the change, None if absent."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class ConfigMapChange:
    """The change of one ConfigMap."""

    source: Source
    data: tuple[Entry, ...]
    annotations: tuple[Entry, ...] = ()
    removes: bool = False
    """Whether to delete the ConfigMap: an install created it, and it holds nothing else."""

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return any(entry.old != entry.new for entry in (*self.data, *self.annotations))

    @property
    def verb(self) -> str:
        """The verb that RBAC has to allow; creating also takes `patch`."""
        if self.removes:
            return "delete"
        return "patch" if self.source.exists else "create"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to install."""

    addresses: tuple[Endpoint, ...]
    """The addresses of dnsproxy: one, unless the user named several."""
    zones: tuple[str, ...] = ()
    """Empty: every name, if the method supports that."""
    rewrites: LiveRewrites | None = None
    """For the method override-rewrites: the names of dnsproxy's table."""


@dataclass(frozen=True, slots=True)
class Edits:
    """The changes of an install or an uninstall, including those that are in place already."""

    method: Method | None
    """None for an uninstall."""
    changes: tuple[ConfigMapChange, ...]
    zones: tuple[str, ...] = ()
    """The zones for which the cluster's DNS asks dnsproxy; for an uninstall, the zones until now."""
    notes: tuple[str, ...] = ()
    """Sentences without a full stop: limits and side effects that a user may not expect."""
    refusals: tuple[str, ...] = ()
    """What an uninstall leaves in place, why, and the remedy. An install is refused as a whole instead."""
    rewrites: ChosenRewrites | None = None
    """For the method override-rewrites: the names that the cluster's DNS rewrites."""

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return any(change.changed for change in self.changes)


@dataclass(frozen=True, slots=True)
class Write:
    """The request that makes a change."""

    method: str
    path: str
    params: Mapping[str, str]
    content: bytes
    content_type: str


def make_write(change: ConfigMapChange) -> Write:
    """The one request for a change; the API server answers 409 if the object has changed since it was read."""
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


def format_diffs(edits: Edits) -> str:
    """The unified diff of all changes."""
    return "".join(map(format_change, edits.changes))


def format_change(change: ConfigMapChange) -> str:
    """The unified diff of a change, one file for each key and one for the annotations; empty if nothing changes."""
    name = f"{change.source.namespace}/{change.source.name}"
    diffs = [format_diff(entry.old or "", entry.new or "", f"{name}/{entry.name}") for entry in change.data]
    old, new = (_lines(change.annotations, old=old) for old in (True, False))
    return "".join([*diffs, format_diff(old, new, f"{name}/metadata.annotations")])


def merge_changes(*groups: Iterable[ConfigMapChange]) -> tuple[ConfigMapChange, ...]:
    """One change for each ConfigMap, in the order of first occurrence."""
    merged: dict[str, ConfigMapChange] = {}
    for change in chain(*groups):
        name = str(change.source)
        before = merged.get(name)
        merged[name] = change if before is None else _merged(before, change)
    return tuple(merged.values())


def keys_left(change: ConfigMapChange) -> set[str]:
    """The keys of the ConfigMap after the change."""
    found = change.source.object
    there = {*(found.data or {}), *(found.binary_data or {})} if found else set()
    gone = {entry.name for entry in change.data if entry.new is None}
    return (there | {entry.name for entry in change.data}) - gone


def annotations_of(source: Source) -> Mapping[str, str]:
    """The annotations of a ConfigMap; empty if it does not exist."""
    return (source.object.metadata.annotations if source.object else None) or {}


def data_of(source: Source) -> Mapping[str, str]:
    """The texts of a ConfigMap; empty if it does not exist."""
    return (source.object.data if source.object else None) or {}


def words_made(source: Source) -> list[str]:
    """The words of the annotation MADE."""
    return annotations_of(source).get(MADE, "").split()


def is_made(change: ConfigMapChange) -> bool:
    """Whether an install created the ConfigMap, or creates it now; an uninstall deletes it then."""
    return change.verb == "create" or OBJECT in words_made(change.source)


def made_entry(source: Source, words: Iterable[str]) -> Entry:
    """The entry that gives the annotation MADE these words, or removes it if there are none."""
    return Entry(MADE, annotations_of(source).get(MADE), " ".join(dict.fromkeys(words)) or None)


def _changed(entries: Iterable[Entry]) -> dict[str, str | None]:
    return {entry.name: entry.new for entry in entries if entry.old != entry.new}


def _encode(body: Mapping[str, Any]) -> bytes:
    # JSON is YAML too.
    return json.dumps(body).encode()


def _lines(entries: Iterable[Entry], *, old: bool) -> str:
    values = [(entry.name, entry.old if old else entry.new) for entry in entries]
    return "".join(f"{name}: {value}\n" for name, value in values if value is not None)


def _merged(first: ConfigMapChange, second: ConfigMapChange) -> ConfigMapChange:
    return ConfigMapChange(
        first.source,
        _latest(first.data, second.data),
        _latest(first.annotations, second.annotations),
        removes=first.removes or second.removes,
    )


def _latest(first: tuple[Entry, ...], second: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return tuple({entry.name: entry for entry in (*first, *second)}.values())
