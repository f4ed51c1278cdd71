"""Watched kinds: the kinds that a source reads, and the version of each to list and watch.

The law: pure. Of the versions that a row names, the first that the API server has; a row without versions takes those
of its group in the server's own order. A kind that is not served is off and does not affect the others.
https://kubernetes.io/docs/reference/using-api/#api-groups
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import msgspec

from sidecar.kubernetes.errors import Garbled, shown
from sidecar.kubernetes.objects import Collection


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """A kind of objects, and where the API server has it."""

    kind: str
    """Unique among all sources: also the name of its claims' source in the claim store."""
    group: str
    """Empty: the core group."""
    versions: tuple[str, ...]
    """The best first; empty: whichever the server prefers."""
    resource: str
    """The plural, as in the path of a request."""
    type: type[Any]
    """The struct that an object is decoded into: the fields that are read are the same in all versions."""
    optional: bool = True
    """As Collection.optional: few clusters have objects of most kinds, so RBAC may not allow them."""
    names_hosts: bool = True
    """Whether --label-selector and --annotation-filter apply: not to objects that others are only resolved by."""
    label_selector: str = ""
    """Only the objects with these labels."""

    def collection(self, version: str) -> Collection[Any]:
        """All its objects in one version."""
        path = f"{path_of(self.group, version)}/{self.resource}"
        return Collection(
            self.kind, path, self.type, label_selector=self.label_selector, optional=self.optional, discovered=True
        )


def path_of(group: str, version: str) -> str:
    """Where the API server lists the resources of a version."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def version_paths(kinds: Iterable[WatchedKind], offered: Mapping[str, Sequence[str]]) -> list[str]:
    """What to ask for resources, each path once; `offered`: the versions of groups, for kinds that name none."""
    return list(dict.fromkeys(path for kind in kinds for path, _ in _places(kind, offered)))


def groups_to_ask(kinds: Iterable[WatchedKind]) -> list[str]:
    """The groups whose versions only the server knows."""
    return list(dict.fromkeys(kind.group for kind in kinds if not kind.versions))


def choose_collections(
    kinds: Iterable[WatchedKind], served: Mapping[str, Set[str]], offered: Mapping[str, Sequence[str]]
) -> dict[str, Collection[Any]]:
    """The collection to follow for each kind that is served. `served`: the names of resources by version_paths()."""
    chosen = {}
    for kind in kinds:
        for path, version in _places(kind, offered):
            if kind.resource in served.get(path, ()):
                chosen[kind.kind] = kind.collection(version)
                break
    return chosen


def _places(kind: WatchedKind, offered: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    for version in kind.versions or offered.get(kind.group, ()):
        yield path_of(kind.group, version), version


class _Resource(msgspec.Struct, frozen=True):
    name: str
    namespaced: bool = True
    verbs: tuple[str, ...] | None = None


class _ResourceList(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] | None = None


def parse_resources(body: bytes, *, namespaced: bool = False) -> frozenset[str]:
    """The resources in an APIResourceList, the answer to GET `/apis/GROUP/VERSION`, that can be listed and watched.

    `namespaced`: without those that are in no namespace. Raises Garbled for anything else.
    """
    resources = _decode(body, _ResourceList, "a list of resources").resources
    return frozenset(
        one.name
        for one in resources or ()
        if {"list", "watch"} <= set(one.verbs or ()) and (one.namespaced or not namespaced)
    )


class _Version(msgspec.Struct, frozen=True):
    version: str


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    versions: tuple[_Version, ...] | None = None
    preferred_version: _Version | None = None


def parse_versions(body: bytes) -> tuple[str, ...]:
    """The versions in an APIGroup, the answer to GET `/apis/GROUP`, the preferred one first. Raises Garbled."""
    group = _decode(body, _Group, "a group of resources")
    preferred = [group.preferred_version] if group.preferred_version else []
    return tuple(dict.fromkeys(one.version for one in (*preferred, *(group.versions or ()))))


def _decode(body: bytes, kind: type[Any], what: str) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Garbled(f"not {what} ({error}): {shown(body)}") from error
