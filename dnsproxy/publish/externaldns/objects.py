"""Objects in the cluster: listed in chunks, applied and deleted under guard.

The law: a change counts only for the object that was read, and a new object is made or fails, so nothing of others is
ever taken over; what the API server says becomes an outcome for that object, or an error where it concerns all.
"""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum, auto
from typing import Final

import trio

from dnsproxy.publish.configmaps.manifests import MANAGER, NEVER_READ, delete_body
from dnsproxy.publish.externaldns.manifests import Kind, Manifest
from dnsproxy.publish.externaldns.planning import Changes, Stored
from sidecar.kubernetes.errors import ApiError, Conflict, NotFound, Refused
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from sidecar.kubernetes.one_shot import list_all

REQUEST_SECONDS: Final = 15.0
_AT_ONCE: Final = 8
"""Requests under way; an API server gives one client about so many at a time."""


class Outcome(Enum):
    """What became of one change."""

    DONE = auto()
    CHANGED_MEANWHILE = auto()
    """Somebody else was quicker: look again."""
    REFUSED = auto()
    """The API server does not take it, and would not at another time."""


class Objects:
    """The objects of one kind in one namespace."""

    def __init__(self, client: ApiClient, kind: Kind, namespace: str) -> None:
        self._client = client
        self._path = kind.path(namespace)
        self._collection = Collection(kind.shown, self._path, Stored)

    async def list(self, *, selector: str = "") -> list[Stored | ObjectMeta]:
        """All of them; of one that cannot be read, who it is. Raises ApiError."""
        found = await list_all(self._client, replace(self._collection, label_selector=selector))
        return [one.metadata if isinstance(one, Unreadable) else one for one in found.values()]

    async def carry_out(self, changes: Changes) -> dict[str, tuple[Outcome, str]]:
        """Make all changes, several at once; what became of each object, and what was said. Raises ApiError."""
        outcomes: dict[str, tuple[Outcome, str]] = {}
        failures: list[ApiError] = []
        limit = trio.CapacityLimiter(_AT_ONCE)

        async def change(name: str, manifest: Manifest | None, stored: Stored | None) -> None:
            async with limit:
                try:
                    outcomes[name] = await self._change(name, manifest, stored)
                except ApiError as error:
                    # What concerns all is no business of the others' requests any more.
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
            # To delete what is gone is done; to make something is not, for want of the namespace or of the kind.
            if manifest is not None:
                raise
        return Outcome.DONE, ""

    async def _apply(self, manifest: Manifest, stored: Stored | None) -> None:
        version = stored.metadata.resource_version if stored else NEVER_READ
        body = {**manifest.body, "metadata": {**manifest.body["metadata"], "resourceVersion": version}}
        await self._client.change(
            "PATCH",
            f"{self._path}/{manifest.name}",
            # What is ours by its labels is ours, whoever edited it by hand.
            {"fieldManager": MANAGER, "force": "true"},
            json.dumps(body).encode(),
            content_type="application/apply-patch+yaml",
            seconds=REQUEST_SECONDS,
        )

    async def _delete(self, name: str, stored: Stored | None) -> None:
        version = stored.metadata.resource_version if stored else ""
        await self._client.change(
            "DELETE",
            f"{self._path}/{name}",
            {},
            delete_body(version),
            content_type="application/json",
            seconds=REQUEST_SECONDS,
        )
