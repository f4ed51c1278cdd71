"""Discovery: which kinds the API server has now, and in which version each is followed.

The law: a thin shell over watched_kinds.py; a group or version that the server does not have is no failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dnsproxy.sources.watched_kinds import (
    WatchedKind,
    choose_collections,
    groups_to_ask,
    parse_resources,
    parse_versions,
    version_paths,
)
from sidecar.kubernetes.errors import NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection

ANSWER: Final = 10.0
"""Seconds for one answer."""


async def discover(
    client: ApiClient, kinds: Sequence[WatchedKind], *, namespaced: bool = False
) -> dict[str, Collection[Any]]:
    """The collection to follow for each served kind; `namespaced`: of those in namespaces. Raises ApiError."""
    offered = {}
    for group in groups_to_ask(kinds):
        body = await _get(client, f"/apis/{group}")
        offered[group] = parse_versions(body) if body is not None else ()
    served = {}
    for path in version_paths(kinds, offered):
        body = await _get(client, path)
        served[path] = parse_resources(body, namespaced=namespaced) if body is not None else frozenset()
    return choose_collections(kinds, served, offered)


async def _get(client: ApiClient, path: str) -> bytes | None:
    """The answer; None if the server does not have it."""
    try:
        return await client.get(path, seconds=ANSWER)
    except NotFound:
        return None
