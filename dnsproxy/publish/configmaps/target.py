"""ConfigMaps as a target: the names of the table for whoever mounts them.

The law: a write counts only for what was read, so of two writers one looks again and finds the same table there; what
is not ours is not written to. The API server is asked for one object at each look, and for no more while that stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import structlog

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.configmaps.manifests import (
    MANAGER,
    NEVER_READ,
    MapName,
    StoredMap,
    apply_body,
    delete_body,
    parse_map,
    parts_stored,
    parts_wanted,
    stored_publication,
)
from dnsproxy.publish.following import Troubled
from dnsproxy.publish.hosts.lines import select_names
from dnsproxy.publish.parts import Part
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.selection import is_doubtful
from sidecar.errors import ExitStatus
from sidecar.kubernetes.errors import ApiError, Conflict, NotFound
from sidecar.kubernetes.http import ApiClient

REQUEST_SECONDS: Final = 15.0
TRIES: Final = 5


class ConfigMapTarget:
    """A ConfigMap, and more of them where one is too small."""

    def __init__(self, client: ApiClient, name: MapName, *, zones: Sequence[str] = (), status: PublishStatus) -> None:
        self._client = client
        self._name = name
        self._zones = zones
        self._status = status
        self._done: tuple[Publication, str] | None = None
        self._log = structlog.get_logger("dnsproxy.publish")

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        """See Target."""
        wanted = replace(publication, names=tuple(select_names(publication.names, zones=self._zones)))
        try:
            for _ in range(TRIES):
                held_back = await self._publish(wanted, confirmed)
                if held_back is not None:
                    return held_back
        except ApiError as error:
            raise Troubled(f"ConfigMap {self._name}: {error}", status=ExitStatus.UNKNOWN) from None
        raise Troubled(f"ConfigMap {self._name} was changed by somebody else {TRIES} times while it was being written")

    async def remove(self) -> bool:
        """Delete what is ours; whether there was anything. Raises Troubled."""
        try:
            maps = await self._read_all(await self._read(self._name))
            for name, one in maps.items():
                await self._delete(name, one)
        except Conflict as error:
            raise Troubled(f"ConfigMap {self._name} is still being written to ({error}); end that first") from None
        except ApiError as error:
            raise Troubled(f"ConfigMap {self._name}: {error}", status=ExitStatus.UNKNOWN) from None
        return bool(maps)

    async def _publish(self, wanted: Publication, confirmed: bool) -> str | None:
        """One try; None where somebody else was quicker."""
        first = await self._read(self._name)
        if first is not None and self._done == (wanted, first.version):
            return ""
        try:
            parts = parts_wanted(wanted)
        except ValueError as error:
            raise Troubled(f"ConfigMap {self._name}: the table does not fit, {error}") from None
        maps = await self._read_all(first, at_least=len(parts))
        stored = stored_publication(maps.values())
        before = len(stored.names) if stored else 0
        if not confirmed and is_doubtful(before=before, after=len(wanted.names)):
            return f"the table has {len(wanted.names)} names of {before}; a second look decides"
        try:
            # What equals another writer's is left alone, however that packed it.
            version = first.version if first and stored == wanted else await self._write(parts, maps)
        except (Conflict, NotFound):
            return None
        self._done = wanted, version
        self._status.names, self._status.objects = len(wanted.names), len(parts)
        return ""

    async def _write(self, parts: Sequence[Part], maps: dict[MapName, StoredMap]) -> str:
        """Write the parts, the first at last: whoever reads it finds the others. Its version."""
        version = ""
        for number, part in reversed(list(enumerate(parts, 1))):
            name = self._name.numbered(number)
            there = maps.pop(name, None)
            version = await self._apply(name, part, there)
        for name, one in maps.items():
            await self._delete(name, one)
        self._status.writes["done"] += 1
        self._log.info("ConfigMap written", name=str(self._name), parts=len(parts))
        return version

    async def _read_all(self, first: StoredMap | None, *, at_least: int = 0) -> dict[MapName, StoredMap]:
        """All that there are, also those that one who was killed left behind where parts are to be."""
        found = {self._name: first} if first else {}
        for number in range(2, max(at_least, parts_stored(first) if first else 0) + 1):
            name = self._name.numbered(number)
            one = await self._read(name)
            if one is not None:
                found[name] = one
        return found

    async def _read(self, name: MapName) -> StoredMap | None:
        try:
            body = await self._client.get(name.path, seconds=REQUEST_SECONDS)
        except NotFound:
            return None
        try:
            one = parse_map(body)
        except ValueError as error:
            raise Troubled(f"ConfigMap {name}: {error}") from None
        if not one.is_ours:
            raise Troubled(f"ConfigMap {name} is not ours (it lacks the label of {MANAGER}), so it is left alone")
        return one

    async def _apply(self, name: MapName, part: Part, there: StoredMap | None) -> str:
        body = apply_body(name, part, version=there.version if there else NEVER_READ)
        made = await self._client.change(
            "PATCH",
            name.path,
            {"fieldManager": MANAGER},
            body,
            content_type="application/apply-patch+yaml",
            seconds=REQUEST_SECONDS,
        )
        return parse_map(made).version

    async def _delete(self, name: MapName, one: StoredMap) -> None:
        body = delete_body(one.version)
        try:
            await self._client.change(
                "DELETE", name.path, {}, body, content_type="application/json", seconds=REQUEST_SECONDS
            )
        except NotFound:
            return
