"""The plan: from the objects that are there and those that should be to what is to be done.

The law: it depends on its two sides alone, and carried out and made again it is empty. What is not ours is never
changed, and keeps only its own hostname from being published; of what is ours, labels and annotations of others are
left alone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dnsproxy.publish.externaldns.manifests import Manifest
from sidecar.kubernetes.objects import ObjectMeta
from sidecar.kubernetes.structs.metadata import LabelledMetadata


class _Metadata(LabelledMetadata, frozen=True, gc=False, rename="camel"):
    generation: int = 0


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    observed_generation: int | None = None


class Stored(msgspec.Struct, frozen=True):
    """What is read of an object of either kind."""

    metadata: _Metadata
    spec: dict[str, Any] | None = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that is not published, and why."""

    manifest: Manifest
    reason: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be done; by name, so that it is always the same for the same sides."""

    create: tuple[Manifest, ...] = ()
    update: tuple[tuple[Manifest, Stored], ...] = ()
    delete: tuple[Stored, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.create or self.update or self.delete)


def plan(current: Iterable[Stored | ObjectMeta], desired: Iterable[Manifest], *, owner: Mapping[str, str]) -> Changes:
    """What makes the objects be as desired.

    `current` are all objects of the kind and namespace; of one that could not be read, who it is. `owner` are the
    labels of ours.
    """
    there = {_metadata(one).name: one for one in current}
    wanted: dict[str, Manifest] = {}
    conflicts: list[Conflict] = []
    for manifest in sorted(desired, key=lambda one: (one.name, one.record.hostname)):
        if reason := _bar(manifest, there.get(manifest.name), wanted, owner):
            conflicts.append(Conflict(manifest, reason))
        else:
            wanted[manifest.name] = manifest
    ours = {name: one for name, one in there.items() if isinstance(one, Stored) and is_owned(one, owner)}
    return Changes(
        create=tuple(one for name, one in wanted.items() if name not in ours),
        update=tuple(
            (one, ours[name]) for name, one in wanted.items() if name in ours and not _is_as_wanted(ours[name], one)
        ),
        delete=tuple(one for name, one in sorted(ours.items()) if name not in wanted),
        conflicts=tuple(conflicts),
    )


def is_owned(stored: Stored, owner: Mapping[str, str]) -> bool:
    """Whether an object is ours."""
    return owner.items() <= (stored.metadata.labels or {}).items()


def _bar(
    manifest: Manifest, there: Stored | ObjectMeta | None, wanted: Mapping[str, Manifest], owner: Mapping[str, str]
) -> str:
    """Why a record cannot have its object; empty where it can."""
    if manifest.name in wanted:
        return f"{wanted[manifest.name].record.hostname} has an object of that name"
    if there is None or (isinstance(there, Stored) and is_owned(there, owner)):
        return ""
    return "an object of that name is not ours; delete it, or label it as ours to hand it over"


def _is_as_wanted(stored: Stored, manifest: Manifest) -> bool:
    metadata = manifest.body["metadata"]
    return (
        _contains(stored.spec, manifest.body["spec"])
        and _contains(stored.metadata.labels, metadata["labels"])
        and _contains(stored.metadata.annotations, metadata["annotations"])
    )


def _contains(there: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; more may be in a mapping, but nothing more in a list."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(_contains(there.get(key), value) for key, value in wanted.items())
    return bool(there == wanted)


def _metadata(one: Stored | ObjectMeta) -> ObjectMeta:
    return one.metadata if isinstance(one, Stored) else one
