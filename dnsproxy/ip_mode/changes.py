"""The changes that --apply and --remove make, in their order, and the one request for each.

The law: only what differs is written; what is not ours is never written; a request is valid only for the version that
was read, so of two writers one has to read again. The policy comes before its binding and leaves after it, so that no
binding refers to nothing; annotations come last. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.owner import OUR_MANAGER
from dnsproxy.install.change.config_map import Write
from dnsproxy.ip_mode.policy import NAME, make_policy
from dnsproxy.ip_mode.present import (
    PLURALS,
    Manifest,
    Present,
    format_object,
    is_ours,
    labels_of,
    object_path,
    service_path,
    without_defaults,
)
from dnsproxy.ip_mode.selection import ANNOTATION, PROXY, Selection
from sidecar.kubernetes.structs.network import Service
from sidecar.values.diffs import format_diff

_NEVER_READ: Final = "1"
"""A resourceVersion that no object has: an apply with it creates the object, or fails if the object exists. Unlike
POST, RBAC can grant it for a single name."""
_MANAGED: Final = {"fieldManager": OUR_MANAGER}
_APPLY: Final = "application/apply-patch+yaml"
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Change:
    """One object to write or to delete."""

    kind: str
    name: str
    """Of a Service: `NAMESPACE/NAME`."""
    verb: str
    """`create`, `patch` or `delete`, as RBAC has it."""
    diff: str
    """Unified."""
    write: Write

    def __str__(self) -> str:
        """What it does: `creates MutatingAdmissionPolicy switchback-ip-mode`."""
        return f"{_WORDS[self.verb]} {self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object that is left as it is."""

    name: str
    """Kind and name."""
    why: str
    """The reason, and what to do."""

    def __str__(self) -> str:
        return f"{self.name} {self.why}"


_WORDS: Final = {"create": "creates", "patch": "changes", "delete": "deletes"}
_NOT_OURS: Final = (
    "exists and is not Switchback's (no label app.kubernetes.io/part-of: switchback): rename or delete it if nothing "
    "needs it, or label it if it is this policy"
)


def foreign_objects(present: Present) -> tuple[Refusal, ...]:
    """The objects of our name that somebody else made."""
    foreign = (kind for kind, found in present.objects.items() if not is_ours(found))
    return tuple(Refusal(f"{kind} {NAME}", _NOT_OURS) for kind in foreign)


def plan_apply(present: Present, selection: Selection) -> tuple[Change, ...]:
    """What makes the policy, its binding and the annotations of the named Services as they should be."""
    wanted = make_policy(present.version, selection)
    written = (_write_object(present, manifest) for manifest in wanted)
    annotated = (_annotate(ref, service, PROXY) for ref, service in present.named.items() if service)
    return tuple(change for change in (*written, *annotated) if change)


def plan_remove(present: Present) -> tuple[Change, ...]:
    """What deletes the binding and the policy, and the annotations of the named Services."""
    deleted = (_delete(present, kind) for kind in reversed(PLURALS) if kind in present.objects)
    annotated = (_annotate(ref, service, None) for ref, service in present.named.items() if service)
    return tuple(change for change in (*deleted, *annotated) if change)


def plan_undo(before: Present, now: Present) -> tuple[Change, ...]:
    """What makes everything that plan_apply changes as it was before."""
    was = ({**one, "spec": without_defaults(one.get("spec") or {})} for one in before.objects.values())
    written = (_write_object(now, manifest) for manifest in was)
    deleted = (_delete(now, kind) for kind in reversed(PLURALS) if kind in now.objects and kind not in before.objects)
    annotated = (
        _annotate(ref, service, _annotated_with(before.named.get(ref))) for ref, service in now.named.items() if service
    )
    return tuple(change for change in (*deleted, *written, *annotated) if change)


def lost_classes(present: Present, selection: Selection) -> tuple[str, ...]:
    """The classes that the policy in the cluster selects and the wanted one does not."""
    return tuple(name for name in present.selection.classes if name not in selection.classes)


def _write_object(present: Present, manifest: dict[str, Any]) -> Change | None:
    kind = manifest["kind"]
    found = present.objects.get(kind)
    path = object_path(present.version, kind)
    diff = format_diff(format_object(found), format_object(_merged(found, manifest)), f"{kind}/{NAME}")
    if found is None:
        body = manifest | {"metadata": manifest["metadata"] | {"resourceVersion": _NEVER_READ}}
        write = Write("PATCH", path, _MANAGED, _encode(body), _APPLY)
        return Change(kind, NAME, "create", diff, write)
    if without_defaults(found.get("spec")) == manifest["spec"] and not _missing_labels(found, manifest):
        return None
    return Change(kind, NAME, "patch", diff, Write("PATCH", path, _MANAGED, _replace(found, manifest), _JSON_PATCH))


def _replace(found: Manifest, manifest: Manifest) -> bytes:
    """Another resourceVersion than the stored one is a conflict, as with PUT, but the verb is `patch`."""
    operations: list[dict[str, Any]] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": _version_of(found)},
        {"op": "add", "path": "/metadata/labels", "value": dict(labels_of(_merged(found, manifest)))},
        {"op": "add", "path": "/spec", "value": manifest["spec"]},
    ]
    return _encode(operations)


def _delete(present: Present, kind: str) -> Change:
    found = present.objects[kind]
    metadata = found.get("metadata") or {}
    preconditions = {key: metadata[key] for key in ("uid", "resourceVersion") if key in metadata}
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
    write = Write("DELETE", object_path(present.version, kind), {}, _encode(body), "application/json")
    return Change(kind, NAME, "delete", format_diff(format_object(found), "", f"{kind}/{NAME}"), write)


def _annotate(ref: ObjectRef, service: Service, value: str | None) -> Change | None:
    now = _annotated_with(service)
    if now == value:
        return None
    body = {"metadata": {"resourceVersion": service.metadata.resource_version, "annotations": {ANNOTATION: value}}}
    diff = format_diff(_annotation(now), _annotation(value), f"Service/{ref}/metadata.annotations")
    return Change(
        "Service", str(ref), "patch", diff, Write("PATCH", service_path(ref), _MANAGED, _encode(body), _MERGE_PATCH)
    )


def _annotated_with(service: Service | None) -> str | None:
    return (service.metadata.annotations or {}).get(ANNOTATION) if service else None


def _annotation(value: str | None) -> str:
    return "" if value is None else f"{ANNOTATION}: {value}\n"


def _missing_labels(found: Manifest, manifest: Manifest) -> bool:
    return not labels_of(manifest).items() <= labels_of(found).items()


def _merged(found: Manifest | None, manifest: Manifest) -> Manifest:
    """The manifest with the other labels of the object."""
    labels = {**(labels_of(found) if found else {}), **labels_of(manifest)}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


def _version_of(found: Manifest) -> str:
    return str((found.get("metadata") or {}).get("resourceVersion") or "")


def _encode(body: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> bytes:
    # JSON is YAML too.
    return json.dumps(body).encode()
