"""The objects of one kind in a namespace: listed in pages, and changed by a plan.

The law: a failure that concerns one object becomes the outcome of that object; a failure that concerns all of them
raises ApiError.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import Final

import trio

from dnsproxy.publish import guarded_writes
from dnsproxy.publish.externaldns.manifests import Kind, Manifest
from dnsproxy.publish.externaldns.planning import Changes, Stored
from sidecar.kubernetes.errors import ApiError, Conflict, NotFound, Refused
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from sidecar.kubernetes.one_shot import list_all

_AT_ONCE: Final = 8
"""Concurrent requests: about as many as an API server serves one client at a time."""


class Outcome(Enum):
    """The outcome of one change."""

    DONE = auto()
    CHANGED_MEANWHILE = auto()
    """Another writer was faster: read again."""
    REFUSED = auto()
    """The API server refuses the change, and would refuse it again."""


class Objects:
    """The objects of one kind in one namespace."""

    def __init__(self, client: ApiClient, kind: Kind, namespace: str) -> None:
        self._client = client
        self._path = kind.path(namespace)
        self._collection = Collection(kind.shown, self._path, Stored)

    async def list(self, *, selector: str = "") -> list[Stored | ObjectMeta]:
        """All objects; of an unreadable one, its metadata. Raises ApiError."""
        found = await list_all(self._client, replace(self._collection, label_selector=selector))
        return [one.metadata if isinstance(one, Unreadable) else one for one in found.values()]

    async def carry_out(self, changes: Changes) -> dict[str, tuple[Outcome, str]]:
        """Write all changes, several at a time; each object's outcome and the server's message. Raises ApiError."""
        outcomes: dict[str, tuple[Outcome, str]] = {}
        failures: list[ApiError] = []
        limit = trio.CapacityLimiter(_AT_ONCE)

        async def change(name: str, manifest: Manifest | None, stored: Stored | None) -> None:
            async with limit:
                try:
                    outcomes[name] = await self._change(name, manifest, stored)
                except ApiError as error:
                    # The failure concerns all objects, so the other requests stop.
                    failures.append(error)
                    nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for one in changes.delete:
                nursery.start_soon(change, one.metadata.name, None, one)
            for manifest, stored in changes.update:
                nursery.start_soon(change, manifest.name, manifest, stored)
            for manifest in changes.create:
                nursery.start_soon(change, manifest.name, manifest, None)
        if failures:
            raise failures[0]
        return outcomes

    async def _change(self, name: str, manifest: Manifest | None, stored: Stored | None) -> tuple[Outcome, str]:
        try:
            if manifest is None:
                await self._delete(name, stored)
            else:
                await self._apply(manifest, stored)
        except Conflict as error:
            return Outcome.CHANGED_MEANWHILE, str(error)
        except Refused as error:
            return Outcome.REFUSED, str(error)
        except NotFound:
            # A missing object is deleted; to create one, the namespace or the kind is missing.
            if manifest is not None:
                raise
        return Outcome.DONE, ""

    async def _apply(self, manifest: Manifest, stored: Stored | None) -> None:
        version = stored.metadata.resource_version if stored else None
        path = f"{self._path}/{manifest.name}"
        # An object with our labels is ours, also the fields that a person edited.
        await guarded_writes.apply(self._client, path, manifest.body, version=version, force=True)

    async def _delete(self, name: str, stored: Stored | None) -> None:
        version = stored.metadata.resource_version if stored else ""
        await guarded_writes.delete(self._client, f"{self._path}/{name}", version=version)
