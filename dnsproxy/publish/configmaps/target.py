"""ConfigMaps as a target: the names of the table, for publishers that mount them.

The law: a write takes effect only on the version that was read. So of two writers one has to read again, and finds the
same table. A ConfigMap without our label is not written. Each publish reads one object, and no more while that object
is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import structlog

from dnsproxy.admin.publication import Publication
from dnsproxy.publish import guarded_writes
from dnsproxy.publish.configmaps.manifests import (
    MANAGER,
    MapName,
    StoredMap,
    make_manifest,
    parse_map,
    parts_stored,
    parts_wanted,
    stored_publication,
)
from dnsproxy.publish.following import PublishError
from dnsproxy.publish.guarded_writes import ATTEMPTS, REQUEST_SECONDS
from dnsproxy.publish.parts import Part
from dnsproxy.publish.publisher_status import DONE, PublishStatus
from dnsproxy.publish.selection import describe_loss, is_sudden_loss, select_names
from sidecar.kubernetes.errors import ApiError, Conflict, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.values.exit_status import ExitStatus


class ConfigMapTarget:
    """A ConfigMap, and more of them if one is too small."""

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
            for _ in range(ATTEMPTS):
                held_back = await self._publish(wanted, confirmed)
                if held_back is not None:
                    return held_back
        except ApiError as error:
            raise PublishError(f"ConfigMap {self._name}: {error}", status=ExitStatus.UNKNOWN) from None
        raise PublishError(f"ConfigMap {self._name} was changed {ATTEMPTS} times by another writer in the meantime")

    async def remove(self) -> bool:
        """Delete our ConfigMaps; whether there were any. Raises PublishError."""
        try:
            maps = await self._read_all(await self._read(self._name))
            for name, one in maps.items():
                await self._delete(name, one)
        except Conflict as error:
            text = f"ConfigMap {self._name} is still being written ({error}); stop the other publisher first"
            raise PublishError(text) from None
        except ApiError as error:
            raise PublishError(f"ConfigMap {self._name}: {error}", status=ExitStatus.UNKNOWN) from None
        return bool(maps)

    async def _publish(self, wanted: Publication, confirmed: bool) -> str | None:
        """One attempt; why the table is held back, or None if another writer was faster."""
        first = await self._read(self._name)
        if first is not None and self._done == (wanted, first.version):
            return ""
        try:
            parts = parts_wanted(wanted)
        except ValueError as error:
            raise PublishError(f"ConfigMap {self._name}: the table does not fit, {error}") from None
        maps = await self._read_all(first, at_least=len(parts))
        stored = stored_publication(maps.values())
        before = len(stored.names) if stored else 0
        if not confirmed and is_sudden_loss(before=before, after=len(wanted.names)):
            return describe_loss(before=before, after=len(wanted.names))
        try:
            # An equal publication of another writer stays, even if that writer packed it into other parts.
            version = first.version if first and stored == wanted else await self._write(parts, maps)
        except (Conflict, NotFound):
            return None
        self._done = wanted, version
        self._status.names, self._status.objects = len(wanted.names), len(parts)
        return ""

    async def _write(self, parts: Sequence[Part], maps: dict[MapName, StoredMap]) -> str:
        """Write the parts, the first one last, so that its readers find the others; returns its version."""
        version = ""
        for number, part in reversed(list(enumerate(parts, 1))):
            name = self._name.numbered(number)
            there = maps.pop(name, None)
            version = await self._apply(name, part, there)
        for name, one in maps.items():
            await self._delete(name, one)
        self._status.writes[DONE] += 1
        self._log.info("ConfigMap written", name=str(self._name), parts=len(parts))
        return version

    async def _read_all(self, first: StoredMap | None, *, at_least: int = 0) -> dict[MapName, StoredMap]:
        """All of our ConfigMaps, also leftovers of a killed publisher at the names of the parts."""
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
            raise PublishError(f"ConfigMap {name}: {error}") from None
        if not one.is_ours:
            raise PublishError(f"ConfigMap {name} is not ours (it lacks the label of {MANAGER}), so it stays unchanged")
        return one

    async def _apply(self, name: MapName, part: Part, there: StoredMap | None) -> str:
        manifest, version = make_manifest(name, part), there.version if there else None
        return parse_map(
            await guarded_writes.apply(self._client, name.path, manifest, version=version, force=False)
        ).version

    async def _delete(self, name: MapName, one: StoredMap) -> None:
        with suppress(NotFound):
            await guarded_writes.delete(self._client, name.path, version=one.version)
