"""Plans the changes from the stored objects to the desired manifests, and finds objects that external-dns ignores.

The law: a plan depends on its two sides alone, and after it was carried out the next plan is empty. An object of
another writer is never changed, and only its own hostname stays unpublished. On our objects, the labels and annotations
of other writers stay. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from dnsproxy.publish.externaldns.manifests import Manifest
from sidecar.kubernetes.objects import ObjectMeta
from sidecar.kubernetes.structs.metadata import LabelledMetadata

OBSERVED_AFTER: Final = 120.0
"""Seconds in which external-dns should have read an object; by default it reads once a minute."""


class _Metadata(LabelledMetadata, frozen=True, gc=False, rename="camel"):
    generation: int = 0


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    observed_generation: int | None = None


class Stored(msgspec.Struct, frozen=True):
    """The fields that are read of an object of either kind."""

    metadata: _Metadata
    spec: dict[str, Any] | None = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that is not published, and the reason."""

    manifest: Manifest
    reason: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The writes to do, sorted by name."""

    create: tuple[Manifest, ...] = ()
    update: tuple[tuple[Manifest, Stored], ...] = ()
    delete: tuple[Stored, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    left: tuple[tuple[Stored, str], ...] = ()
    """Objects with our labels that are not deleted, and the reason."""

    @property
    def any(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.create or self.update or self.delete)


def plan(
    current: Iterable[Stored | ObjectMeta],
    desired: Iterable[Manifest],
    *,
    owner: Mapping[str, str],
    why_left: Callable[[Stored], str] = lambda _: "",
) -> Changes:
    """The changes that make the stored objects equal to the desired ones.

    `current` has all objects of the kind in the namespace; an unreadable object is given by its metadata. `owner` has
    the labels that mark our objects. `why_left` returns why an object with them is another publisher's, or an empty
    text.
    """
    there = {_metadata(one).name: one for one in current}
    owned = {name: one for name, one in there.items() if isinstance(one, Stored) and is_owned(one, owner)}
    left = {name: reason for name, one in owned.items() if (reason := why_left(one))}
    wanted: dict[str, Manifest] = {}
    conflicts: list[Conflict] = []
    for manifest in sorted(desired, key=lambda one: (one.name, one.record.hostname)):
        if reason := left.get(manifest.name) or _conflict(manifest, there.get(manifest.name), wanted, owner):
            conflicts.append(Conflict(manifest, reason))
        else:
            wanted[manifest.name] = manifest
    ours = {name: one for name, one in owned.items() if name not in left}
    return Changes(
        create=tuple(one for name, one in wanted.items() if name not in ours),
        update=tuple(
            (one, ours[name]) for name, one in wanted.items() if name in ours and not _is_as_wanted(ours[name], one)
        ),
        delete=tuple(one for name, one in sorted(ours.items()) if name not in wanted),
        conflicts=tuple(conflicts),
        left=tuple((owned[name], reason) for name, reason in sorted(left.items())),
    )


def is_owned(stored: Stored, owner: Mapping[str, str]) -> bool:
    """Whether an object has our labels."""
    return owner.items() <= (stored.metadata.labels or {}).items()


def unobserved(objects: Iterable[Stored], *, now: datetime) -> list[str]:
    """The names of DNSEndpoints that external-dns should have read by now and has not, sorted.

    external-dns writes the generation that it has read into the status; a headless Service has no such field.
    """
    return sorted(one.metadata.name for one in objects if _is_behind(one) and _age(one, now) > OBSERVED_AFTER)


def _is_behind(one: Stored) -> bool:
    observed = one.status.observed_generation if one.status else None
    return observed is None or observed < one.metadata.generation


def _age(one: Stored, now: datetime) -> float:
    """Seconds since the object was created; 0 if that is unknown. The caller waits after a change."""
    try:
        created = datetime.fromisoformat(one.metadata.creation_timestamp or "")
    except ValueError:
        return 0.0
    return (now - (created if created.tzinfo else created.replace(tzinfo=UTC))).total_seconds()


def _conflict(
    manifest: Manifest, there: Stored | ObjectMeta | None, wanted: Mapping[str, Manifest], owner: Mapping[str, str]
) -> str:
    """Why a record cannot have its object; empty if it can."""
    if manifest.name in wanted:
        return f"{wanted[manifest.name].record.hostname} has an object of that name"
    if there is None or (isinstance(there, Stored) and is_owned(there, owner)):
        return ""
    return "an object of that name is not ours; delete it, or give it our labels to hand it over"


def _is_as_wanted(stored: Stored, manifest: Manifest) -> bool:
    metadata = manifest.body["metadata"]
    return (
        _contains(stored.spec, manifest.body["spec"])
        and _contains(stored.metadata.labels, metadata["labels"])
        and _contains(stored.metadata.annotations, metadata["annotations"])
    )


def _contains(there: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; a mapping may have more entries, a list may not."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(_contains(there.get(key), value) for key, value in wanted.items())
    return bool(there == wanted)


def _metadata(one: Stored | ObjectMeta) -> ObjectMeta:
    return one.metadata if isinstance(one, Stored) else one
