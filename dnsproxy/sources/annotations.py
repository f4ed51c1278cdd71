"""Annotations: the settings on an object itself (`switchback.dev/...`), as annotations or as labels.

The law: an annotation overrides a label of the same name. An object with an invalid `ignore` or `target` is excluded,
because its owner wanted something other than the default; an invalid hostname affects no other hostname.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from sys import intern
from typing import Final

import msgspec

from dnsproxy.dns.names import parse_hostnames
from dnsproxy.hostnames.claims import Origin, Rejection
from dnsproxy.hostnames.targets import BadTarget, parse_target
from sidecar.kubernetes.objects import ObjectMeta
from sidecar.values.text import quoted

IGNORE: Final = "switchback.dev/ignore"
"""`true`: the object is excluded; it claims nothing."""
TARGET: Final = "switchback.dev/target"
"""The target of its names; overrides --target and --target-for."""
HOSTNAME: Final = "switchback.dev/hostname"
"""Additional hostnames, separated by commas."""


MOST_HOSTNAMES: Final = 1_000
"""In one annotation: 256 KiB may have 100,000, which would take a tenth of a second to read."""


class AnnotationFields(msgspec.Struct, frozen=True, gc=False):
    """Our annotations, or labels, as text."""

    ignore: str | None = msgspec.field(default=None, name=IGNORE)
    target: str | None = msgspec.field(default=None, name=TARGET)
    hostname: str | None = msgspec.field(default=None, name=HOSTNAME)


class AnnotatedMetadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    """The identity of an object, and our annotations on it."""

    annotations: AnnotationFields | None = None
    labels: AnnotationFields | None = None


class Annotations(msgspec.Struct, frozen=True, gc=False):
    """The parsed annotations of one object."""

    ignored: bool = False
    target: str | None = None
    """In the form of Terms.target."""
    hostnames: tuple[str, ...] = ()
    """In normal form, each once."""
    faults: tuple[str, ...] = ()
    """Why the object is excluded."""
    bad_hostnames: tuple[str, ...] = ()
    """Why a hostname was rejected; the other hostnames count."""

    @property
    def exclusion(self) -> str | None:
        """Why the object claims nothing, to be appended to its name; None if it may."""
        if self.ignored:
            return f"is ignored ({IGNORE})"
        return "has an invalid annotation" if self.faults else None


NO_ANNOTATIONS: Final = Annotations()
_NO_FIELDS: Final = AnnotationFields()


def read_annotations(metadata: AnnotatedMetadata) -> Annotations:
    """The annotations in an object's metadata."""
    first, second = metadata.annotations or _NO_FIELDS, metadata.labels or _NO_FIELDS
    ignore = first.ignore if first.ignore is not None else second.ignore
    target = first.target if first.target is not None else second.target
    hostname = first.hostname if first.hostname is not None else second.hostname
    if ignore is None and target is None and hostname is None:
        return NO_ANNOTATIONS
    faults = []
    if ignore not in (None, "true", "false"):
        faults.append(f"{IGNORE}: {quoted(ignore or '')} is neither true nor false")
    try:
        target = parse_target(target) if target is not None else None
    except BadTarget as error:
        target = None
        faults.append(f"{TARGET}: {error}")
    hostnames, bad_hostnames = _parse_hostnames(hostname)
    return Annotations(ignore == "true", target, hostnames, tuple(faults), bad_hostnames)


def rejections_of(origin: Origin, annotations: Annotations, hostnames: Iterable[str]) -> list[Rejection]:
    """One rejection for each hostname of an excluded object, so that a search for the hostname finds it."""
    return [Rejection(origin, f"{name}: it {annotations.exclusion}", annotations.ignored) for name in hostnames]


def origin_of(kind: str, metadata: ObjectMeta) -> Origin:
    """Where the claims of an object come from."""
    return Origin(kind, metadata.name, intern(metadata.namespace or ""), _share(metadata.creation_timestamp or ""))


@lru_cache(maxsize=1024)
def _share(created: str) -> str:
    """The same text for equal times: objects that were created together are listed together."""
    return created


def split_list(text: str) -> tuple[list[str], bool]:
    """The first MOST_HOSTNAMES items of a list, without empty ones; and whether there are more."""
    *parts, rest = text.split(",", MOST_HOSTNAMES)
    is_full = len(parts) == MOST_HOSTNAMES
    given = parts if is_full else [*parts, rest]
    return [part.strip() for part in given if part.strip()], is_full and bool(rest.strip())


def _parse_hostnames(text: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The valid hostnames of a list, and a fault for each other one."""
    given, is_cut = split_list(text or "")
    faults = [f"it has more than {MOST_HOSTNAMES:,} hostnames: the others are left out"] if is_cut else []
    hostnames, bad_hostnames = parse_hostnames(given)
    return tuple(hostnames), tuple(dict.fromkeys(f"{HOSTNAME}: {fault}" for fault in faults + bad_hostnames))
