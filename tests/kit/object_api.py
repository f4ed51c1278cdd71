"""An API server in memory for guarded writes of objects, over a transport of httpx2.

The law: the apply of one field manager works as on a real server (fields that the manager no longer applies are
removed), and so do resource versions, preconditions, label selectors and paged lists; tests/peers has the same cases
with a real server.
"""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpx2

from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.http import ApiClient
from tests.kit.manifest_api import respond

Object = dict[str, Any]

PLURALS = ("configmaps", "services", "dnsendpoints", "nodes", "jobs")


@dataclass
class ObjectApi:
    """`objects` by path; `refusals` by method and path (or its suffix) replace responses; `before` is called first.

    `outlives` has the number of reads for which a path answers after a deletion in the foreground, as its pods end.
    """

    objects: dict[str, Object] = field(default_factory=dict)
    refusals: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    before: Callable[[str, str], None] = lambda *_: None
    asked: list[tuple[str, str]] = field(default_factory=list)
    outlives: dict[str, int] = field(default_factory=dict)
    largest_page: int = 500
    _version: int = 1

    def put(self, path: str, item: Object) -> None:
        """Create or replace an object, as another writer would."""
        self._version += 1
        stored = copy.deepcopy(item)
        metadata = stored.setdefault("metadata", {})
        metadata |= {"name": path.rpartition("/")[2], "resourceVersion": str(self._version)}
        metadata.setdefault("generation", self._version)
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        self.objects[path] = stored

    def recreate(self, path: str) -> None:
        """From now on another program creates this object again, before it is looked for."""

        def before(method: str, _: str) -> None:
            if method == "GET" and path not in self.objects:
                self.put(path, {"metadata": {"uid": "again"}})

        self.before = before

    def writes(self) -> list[tuple[str, str]]:
        """The write requests: method and name."""
        return [(method, path.rpartition("/")[2]) for method, path in self.asked if method != "GET"]

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request."""
        method, path = request.method, unquote(request.url.path)
        self.asked.append((method, path))
        self.before(method, path)
        for (refused, end), (code, message) in self.refusals.items():
            if method == refused and path.endswith(end):
                return _failure(code, message)
        match method:
            case "GET" if path in self.objects:
                return self._get(path)
            case "POST":
                return self._create(path, json.loads(request.content))
            case "GET":
                return self._list(path, dict(request.url.params))
            case "PATCH":
                return self._apply(path, json.loads(request.content))
            case "DELETE":
                return self._delete(path, json.loads(request.content))
        raise AssertionError(f"{method} {path}")

    def _get(self, path: str) -> httpx2.Response:
        found = self.objects[path]
        if "deletionTimestamp" in found["metadata"]:
            self.outlives[path] -= 1
            if self.outlives[path] == 0:
                del self.objects[path]
        return _success(found)

    def _create(self, path: str, body: Object) -> httpx2.Response:
        key = f"{path}/{body['metadata']['name']}"
        if key in self.objects:
            return _failure(409, "already exists")
        self.put(key, body)
        return _success(self.objects[key], 201)

    def _list(self, path: str, params: dict[str, str]) -> httpx2.Response:
        if path.rpartition("/")[2] not in PLURALS:
            return _failure(404, "not found")
        wanted = dict(one.split("=") for one in params.get("labelSelector", "").split(",") if one)
        items = [
            item
            for key, item in sorted(self.objects.items())
            if key.rpartition("/")[0] == path and wanted.items() <= (item["metadata"].get("labels") or {}).items()
        ]
        start = int(params.get("continue") or 0)
        stop = start + min(int(params.get("limit") or len(items)), self.largest_page)
        metadata = {"resourceVersion": str(self._version), "continue": str(stop) if stop < len(items) else ""}
        return _success({"metadata": metadata, "items": items[start:stop]})

    def _apply(self, path: str, body: Object) -> httpx2.Response:
        there = self.objects.get(path)
        version = body["metadata"].pop("resourceVersion", "")
        if there is not None and there["metadata"]["resourceVersion"] != version:
            return _failure(409, "the object has been modified")
        if there is None and version != "1":
            return _failure(409, "the object is not there any more")
        applied = (there or {}).get("applied", {})
        changed = _merged(there or {}, body, applied)
        if there is not None and {**changed, "applied": None} == {**there, "applied": None}:
            return _success(there)
        if there is not None and changed.get("spec") != there.get("spec"):
            changed["metadata"].pop("generation", None)
        self.put(path, {**changed, "applied": body})
        return _success(self.objects[path], 201 if there is None else 200)

    def _delete(self, path: str, body: Object) -> httpx2.Response:
        there = self.objects.get(path)
        if there is None:
            return _failure(404, "not found")
        version = (body.get("preconditions") or {}).get("resourceVersion")
        if version not in (None, there["metadata"]["resourceVersion"]):
            return _failure(409, "the object has been modified")
        if body.get("propagationPolicy") == "Foreground" and self.outlives.get(path):
            there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            return _success(there)
        del self.objects[path]
        return _success({"kind": "Status", "status": "Success"})


@asynccontextmanager
async def client_of(api: ObjectApi) -> AsyncIterator[ApiClient]:
    """A client of that API server."""
    cluster = Cluster("http://api.example.org", "the test", lambda: None, lambda: cluster, namespace="edge")
    async with ApiClient(cluster, transport=httpx2.MockTransport(api.answer)) as client:
        yield client


def _merged(there: Any, body: Any, applied: Any) -> Any:
    """The object without the fields that are no longer applied, and with the new ones; lists are atomic."""
    if not isinstance(body, dict) or not isinstance(there, dict):
        return copy.deepcopy(body)
    before = applied if isinstance(applied, dict) else {}
    kept = {key: value for key, value in there.items() if key in body or key not in before}
    return kept | {key: _merged(there.get(key, {}), value, before.get(key, {})) for key, value in body.items()}


def _success(body: Object, code: int = 200) -> httpx2.Response:
    return respond(code, json.dumps(body).encode())


def _failure(code: int, message: str) -> httpx2.Response:
    return respond(code, json.dumps({"kind": "Status", "code": code, "message": message}).encode())
