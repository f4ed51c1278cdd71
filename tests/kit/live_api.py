"""An API server with objects in it, over memory streams: lists and watches of the resources it serves at the moment.

The law: its responses about objects are those of a real server; a fault that a test sets takes precedence.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import h11
import trio

from tests.kit.faulty_api import CUT, Answer, Asked, FaultyApi, Part, event, failure

ALL_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")

Storage = tuple[str, str]
"""Group and resource: every version has the same objects."""


@dataclass(frozen=True)
class _Event:
    version: int
    kind: str
    storage: Storage
    item: dict[str, Any]
    before: dict[str, Any] | None = None
    """The object that it replaces."""

    def kind_for(self, asked: Asked) -> str | None:
        """What a watch is told: an object that a selector does not select any more is deleted for it."""
        is_meant = _is_meant(self.item, asked)
        if self.before is None or is_meant is _is_meant(self.before, asked):
            return self.kind if is_meant else None
        return "ADDED" if is_meant else "DELETED"


@dataclass
class LiveApi(FaultyApi):
    """`provide` and `withdraw` resources, `put` and `remove` objects; `faults` by path replace responses."""

    lists: Sequence[Answer] = ()
    faults: dict[str, Answer] = field(default_factory=dict)
    cluster_wide: frozenset[str] = frozenset({"ingressclasses", "namespaces"})
    """The resources that are in no namespace."""
    _served: dict[str, dict[str, None]] = field(default_factory=dict)
    _objects: dict[Storage, dict[str, dict[str, Any]]] = field(default_factory=dict)
    _events: list[_Event] = field(default_factory=list)
    _version: int = 1
    _news: trio.Event = field(default_factory=trio.Event)
    _lives: int = 0

    def provide(self, group_version: str, *resources: str) -> None:
        """Serve these resources; `v1` is the core group's version."""
        self._served.setdefault(group_version, {}).update(dict.fromkeys(resources))
        self._wake()

    def withdraw(self, group_version: str, *resources: str) -> None:
        """Stop serving them in this version; watches of it end."""
        for resource in resources:
            del self._served[group_version][resource]
        if not self._served[group_version]:
            del self._served[group_version]
        self._wake()

    def put(self, group: str, resource: str, item: Mapping[str, Any]) -> None:
        """Create an object, or replace it."""
        self._version += 1
        stored = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self._version)}}
        objects = self._objects.setdefault((group, resource), {})
        before = objects.get(_key(stored))
        objects[_key(stored)] = stored
        self._tell("MODIFIED" if before is not None else "ADDED", (group, resource), stored, before)

    def remove(self, group: str, resource: str, key: str) -> None:
        """Delete an object, `NAMESPACE/NAME` or `NAME`."""
        self._version += 1
        item = self._objects[group, resource].pop(key)
        self._tell("DELETED", (group, resource), item)

    def crash(self) -> None:
        """Break every connection and accept none until `recover`."""
        self.down = True
        self._lives += 1
        self._wake()

    def recover(self) -> None:
        self.down = False

    def asked_for(self, path: str) -> int:
        """The number of requests for a path."""
        return sum(one.path == path for one in self.asked)

    def _answer(self, request: h11.Request) -> Answer:
        url = urlsplit(request.target.decode())
        self.asked.append(Asked(url.path, dict(parse_qsl(url.query)), {}, trio.current_time()))
        if url.path in self.faults:
            return self.faults[url.path]
        if url.path == "/version":
            return Answer([b'{"major": "1", "minor": "36"}'])
        if url.path.startswith("/apis/") and url.path.count("/") == 2:
            return _group(url.path.rpartition("/")[2], self._served)
        group_version, rest = _split(url.path)
        served = self._served.get(group_version)
        resource = rest.rpartition("/")[2]
        nowhere = "/" in rest and resource in self.cluster_wide
        if served is None or (rest and resource not in served) or nowhere:
            return failure(404, "NotFound")
        if not rest:
            return _discovery(group_version, served, self.cluster_wide)
        return self._collection(self.asked[-1], group_version, resource)

    def _collection(self, asked: Asked, group_version: str, resource: str) -> Answer:
        storage = group_version.rpartition("/")[0], resource
        if asked.is_watch:
            return Answer(self._watch(asked, group_version, storage))
        items = [item for item in self._objects.get(storage, {}).values() if _is_meant(item, asked)]
        return Answer([json.dumps({"metadata": {"resourceVersion": str(self._version)}, "items": items}).encode()])

    async def _watch(self, asked: Asked, group_version: str, storage: Storage) -> AsyncGenerator[Part]:
        life, told = self._lives, int(asked.params["resourceVersion"])
        deadline = trio.current_time() + float(asked.params["timeoutSeconds"])
        while trio.current_time() < deadline:
            if storage[1] not in self._served.get(group_version, ()):
                return
            for one in [one for one in self._events if one.version > told]:
                told = one.version
                kind = one.kind_for(asked) if one.storage == storage else None
                if kind is not None:
                    yield event(kind, one.item)
            with trio.move_on_at(deadline):
                await self._news.wait()
            if life != self._lives:
                yield CUT

    def _tell(self, kind: str, storage: Storage, item: dict[str, Any], before: dict[str, Any] | None = None) -> None:
        self._events.append(_Event(self._version, kind, storage, item, before))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()


def _split(path: str) -> tuple[str, str]:
    """The group and version in a path, and the rest of the path."""
    parts = path.strip("/").split("/")
    count = 1 if parts[0] == "api" else 2
    return "/".join(parts[1 : 1 + count]), "/".join(parts[1 + count :])


def _group(name: str, served: Iterable[str]) -> Answer:
    versions = [{"version": one.rpartition("/")[2]} for one in served if one.rpartition("/")[0] == name]
    if not versions:
        return failure(404, "NotFound")
    return Answer([json.dumps({"name": name, "versions": versions, "preferredVersion": versions[0]}).encode()])


def _discovery(group_version: str, served: Mapping[str, None], cluster_wide: Set[str]) -> Answer:
    resources = [{"name": name, "namespaced": name not in cluster_wide, "verbs": ALL_VERBS} for name in served]
    return Answer([json.dumps({"groupVersion": group_version, "resources": resources}).encode()])


def _is_meant(item: Mapping[str, Any], asked: Asked) -> bool:
    parts = asked.path.split("/")
    namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else None
    name = asked.params.get("fieldSelector", "").removeprefix("metadata.name=")
    metadata = item["metadata"]
    label, _, value = asked.params.get("labelSelector", "").partition("=")
    labelled = not label or (metadata.get("labels") or {}).get(label) == value
    return namespace in (None, metadata.get("namespace")) and name in ("", metadata["name"]) and labelled


def _key(item: Mapping[str, Any]) -> str:
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
