"""Reads kinds: the objects of watched kinds, each in the version that the API server has.

The law: a version that the API server does not have is an absence; if its discovery failed, the kinds that it may have
are lists that could not be read. Tested in tests/dnsproxy/doctor/collect/test_read_hosts.py and test_read_sources.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.sources.object_source import ObjectSource
from dnsproxy.sources.watched_kinds import (
    WatchedKind,
    choose_collections,
    groups_to_ask,
    parse_resources,
    parse_versions,
    version_paths,
)
from sidecar.kubernetes.errors import ApiError, NotFound
from sidecar.kubernetes.objects import Collection, Resource, key_of
from sidecar.loop.side_by_side import read_each

T = TypeVar("T")

_SETTLE: Final = 1000

Objects = dict[str, Any]
"""Objects of one kind by `NAMESPACE/NAME`, or by name."""
ListName = Callable[[WatchedKind], str]
"""The name of a list request."""


async def read_kinds(reader: Reader, kinds: Sequence[WatchedKind], name: ListName) -> dict[str, Objects]:
    """The objects of the kinds that the API server has, by kind."""
    chosen = await discover_kinds(reader, kinds, name)
    names = {kind.kind: name(kind) for kind in kinds}
    found = await read_each(lambda one: read_objects(reader, one, names[one.kind], names_hosts=True), chosen.values())
    return dict(zip(chosen, found, strict=True))


async def read_objects(
    reader: Reader, collection: Collection[Any], what: str = "", *, names_hosts: bool = False
) -> Objects:
    """The objects of a collection; none if it could not be read. `names_hosts`: as Reader.list."""
    what = what or list_of(collection.path)
    selector = collection.label_selector
    found: list[Resource] | None = await reader.list(
        collection.path, collection.type, what, selector=selector, names_hosts=names_hosts
    )
    return {key_of(one.metadata): one for one in found or ()}


def list_of(path: str) -> str:
    """The name of a list request."""
    return f"list {path.rpartition('/')[2]}"


async def discover_kinds(reader: Reader, kinds: Sequence[WatchedKind], name: ListName) -> dict[str, Collection[Any]]:
    """Where the API server has each kind."""
    offered, unknown = await _ask_each(
        reader, {f"/apis/{group}": group for group in groups_to_ask(kinds)}, parse_versions
    )
    paths = version_paths(kinds, offered)
    served, failed = await _ask_each(reader, {path: path for path in paths}, parse_resources)
    chosen = choose_collections(kinds, served, offered)
    every = frozenset(kind.resource for kind in kinds)
    possible = choose_collections(kinds, dict.fromkeys(failed, every), offered)
    for kind in kinds:
        if kind.kind in chosen:
            continue
        if kind.kind in possible:
            path = possible[kind.kind].path.rpartition("/")[0]
            reader.note(failed[path], name(kind), path, names_hosts=True)
        elif not kind.versions and kind.group in unknown:
            reader.note(unknown[kind.group], name(kind), f"/apis/{kind.group}", names_hosts=True)
    return chosen


async def _ask_each(
    reader: Reader, paths: Mapping[str, str], parse: Callable[[bytes], T]
) -> tuple[dict[str, T], dict[str, ApiError]]:
    """What is at these paths, and why it is unknown, by the names of the paths; a 404 is neither."""
    answers = await read_each(lambda path: _ask(reader, path, parse), paths)
    pairs = list(zip(paths.values(), answers, strict=True))
    failed = {name: one for name, one in pairs if isinstance(one, ApiError)}
    return {name: one for name, one in pairs if one is not None and not isinstance(one, ApiError)}, failed


async def _ask(reader: Reader, path: str, parse: Callable[[bytes], T]) -> T | ApiError | None:
    try:
        return parse((await reader.text(path, f"discover {path.removeprefix('/apis/')}")).encode())
    except NotFound:
        return None
    except ApiError as error:
        return error


def settle(source: ObjectSource) -> None:
    """Let a source make all its claims."""
    while not source.is_settled:
        source.settle(_SETTLE)
