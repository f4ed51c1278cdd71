"""Removal of objects: one object, or a workload together with its pods.

The law: what is not there is removed already. A workload has ended only when the API server no longer has it: a
deletion in the foreground keeps it until each of its pods has ended on its node.
https://kubernetes.io/docs/concepts/architecture/garbage-collection/#foreground-deletion
"""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Final

import msgspec
import trio

from sidecar.kubernetes.errors import NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.one_shot import get_object

_SECONDS: Final = 10.0
"""For one answer of the API server."""
_PAUSE: Final = 1.0
"""Seconds between two looks."""


class Ended(Enum):
    """How the removal of a workload went."""

    GONE = "gone"
    REMAINS = "remains"
    """Its pods have not ended in time."""
    AGAIN = "again"
    """Another program has created it again."""


class _Metadata(msgspec.Struct, frozen=True):
    uid: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata


async def delete_object(client: ApiClient, path: str, *, policy: str = "Background") -> None:
    """Delete the object at a path. Raises ApiError, but not if it is not there."""
    body = json.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}).encode()
    try:
        await client.change("DELETE", path, {}, body, content_type="application/json", seconds=_SECONDS)
    except NotFound:
        return


async def end_workload(
    client: ApiClient, path: str, *, seconds: float, on_wait: Callable[[float], None] = lambda _: None
) -> Ended:
    """Delete a workload, and wait for at most `seconds` until its last pod has ended. Raises ApiError.

    `on_wait` is called with the seconds since the deletion.
    """
    uid = await _uid_at(client, path)
    if uid is None:
        return Ended.GONE
    await delete_object(client, path, policy="Foreground")
    began = trio.current_time()
    with trio.move_on_after(seconds):
        while True:
            now = await _uid_at(client, path)
            if now != uid:
                return Ended.GONE if now is None else Ended.AGAIN
            on_wait(trio.current_time() - began)
            await trio.sleep(_PAUSE)
    return Ended.REMAINS


async def is_there(client: ApiClient, path: str) -> bool:
    """Whether the API server has an object at a path. Raises ApiError."""
    return await _uid_at(client, path) is not None


async def _uid_at(client: ApiClient, path: str) -> str | None:
    try:
        return (await get_object(client, path, _Object, seconds=_SECONDS)).metadata.uid
    except NotFound:
        return None
