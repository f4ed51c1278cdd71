"""A fake API server with the objects of manifests: the GET requests of discovery and the writes of an install."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import yaml

from tests.kit.manifest_cluster import Manifest

_KINDS = {
    "services": "Service",
    "configmaps": "ConfigMap",
    "deployments": "Deployment",
    "daemonsets": "DaemonSet",
    "statefulsets": "StatefulSet",
    "cronjobs": "CronJob",
    "endpointslices": "EndpointSlice",
    "ingresses": "Ingress",
    "events": "Event",
    "pods": "Pod",
    "leases": "Lease",
}


@dataclass
class FakeApi:
    """The responses of an API server with these objects, as values; `serving` serves them over HTTP."""

    objects: Sequence[Manifest]
    forbidden: Sequence[str] = ()
    """Path suffixes that RBAC refuses."""
    forbidden_writes: Sequence[str] = ()
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and label selector of every request."""
    limits: list[int] = field(default_factory=list)
    """The limit of every list request; 0 if it has none."""
    expires: int = 0
    """The number of continue tokens to refuse as expired."""

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request."""
        selector = request.url.params.get("labelSelector", "")
        self.asked.append((request.method, request.url.path, selector))
        if request.method != "GET":
            return respond(*_encoded(self.write(request.method, request.url.path, json.loads(request.content))))
        status, body = self.decide(request.url.path, selector)
        if status == 200 and "items" in body:
            status, body = self.chunk(body["items"], request.url.params)
        return respond(*_encoded((status, body)))

    def chunk(self, items: Sequence[Manifest], params: httpx2.QueryParams) -> tuple[int, Any]:
        """Status and body for one chunk of a list."""
        limit, token = int(params.get("limit", 0)), params.get("continue", "")
        self.limits.append(limit)
        if token and self.expires:
            self.expires -= 1
            return 410, _failure(410, "Expired", "the provided continue parameter is too old")
        start = int(token or 0)
        stop = start + (limit or len(items))
        following = {"continue": str(stop)} if stop < len(items) else {}
        return 200, {"metadata": {"resourceVersion": "1", **following}, "items": items[start:stop]}

    def write(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and body for a change."""
        if any(path.endswith(end) for end in self.forbidden_writes):
            return 403, _failure(403, "Forbidden", "no rule allows it")
        if path.endswith("/events"):
            name = body["metadata"]["name"]
            if any(one["kind"] == "Event" and one["metadata"]["name"] == name for one in self.objects):
                return 409, _failure(409, "AlreadyExists", f"events {name} already exists")
            self.objects = [*self.objects, body]
            return 201, body
        if path.endswith("/scale"):
            return self._scale(path.removesuffix("/scale").rpartition("/")[2], body)
        return self._write_config_map(method, path, body)

    def _write_config_map(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """A guarded change; the kind of patch follows from its content."""
        namespace, _, name = path.partition("/namespaces/")[2].partition("/configmaps/")
        found = [one for one in self.objects if self._is_in(one, namespace, "ConfigMap", "")]
        there = next((one for one in found if one["metadata"]["name"] == name), None)
        version = (body.get("preconditions") or body.get("metadata"))["resourceVersion"]
        if there is None and method == "PATCH" and body.get("kind") == "ConfigMap":
            made = {**body, "metadata": {**body["metadata"], "resourceVersion": self._next_version()}}
            self.objects = [*self.objects, made]
            return 201, made
        if there is None:
            return 404, _failure(404, "NotFound", f"configmaps {name} not found")
        if there["metadata"].get("resourceVersion", "") != version:
            return 409, _failure(409, "Conflict", "the object has been modified")
        if method == "DELETE":
            self.objects = [one for one in self.objects if one is not there]
            return 200, {"kind": "Status", "status": "Success"}
        _merge(there, {key: value for key, value in body.items() if key in ("data", "metadata")})
        there["metadata"]["resourceVersion"] = self._next_version()
        return 200, there

    def _scale(self, name: str, body: Any) -> tuple[int, Any]:
        """Scale a Deployment; its pods, whose names begin with its own, are gone at once."""
        pods = [one for one in self.objects if one["kind"] == "Pod" and one["metadata"]["name"].startswith(f"{name}-")]
        self.objects = [one for one in self.objects if one not in pods]
        (found,) = (one for one in self.objects if (one["kind"], one["metadata"]["name"]) == ("Deployment", name))
        found["spec"]["replicas"] = body["spec"]["replicas"]
        return 200, {"kind": "Scale", **body}

    def _next_version(self) -> str:
        return str(1 + max(int(one["metadata"].get("resourceVersion") or 0) for one in self.objects))

    def decide(self, path: str, selector: str = "") -> tuple[int, Any]:
        """Status and body for a path."""
        if any(path.endswith(end) for end in self.forbidden):
            return 403, _failure(403, "Forbidden", "no rule allows it")
        namespace, _, rest = path.partition("/namespaces/")[2].partition("/")
        plural, _, name = (rest or path.rpartition("/")[2]).partition("/")
        found = [one for one in self.objects if self._is_in(one, namespace, _KINDS[plural], selector)]
        if not name:
            return 200, {"metadata": {}, "items": found}
        named = [one for one in found if one["metadata"]["name"] == name]
        return (200, named[0]) if named else (404, _failure(404, "NotFound", f"{plural} {name} not found"))

    def _is_in(self, one: Manifest, namespace: str, kind: str, selector: str) -> bool:
        labels = one["metadata"].get("labels") or {}
        key, _, value = selector.partition("=")
        labelled = not selector or labels.get("k8s-app") in ("kube-dns", "coredns") or labels.get(key) == value != ""
        return one["kind"] == kind and namespace in ("", one["metadata"].get("namespace")) and labelled


def respond(status: int, body: bytes) -> httpx2.Response:
    """A response whose body is read later, as from a network."""

    async def chunks() -> AsyncIterator[bytes]:
        yield body

    return httpx2.Response(status, content=chunks())


@contextmanager
def serving(api: FakeApi, folder: Path) -> Iterator[Path]:
    """The kubeconfig of that API over HTTP on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            self.respond(*_encoded(api.decide(url.path, dict(parse_qsl(url.query)).get("labelSelector", ""))))

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.respond(*_encoded(api.write(self.command, urlsplit(self.path).path, body)))

        def do_POST(self) -> None:
            self.do_PATCH()

        def do_DELETE(self) -> None:
            self.do_PATCH()

        def respond(self, status: int, octets: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(octets)))
            self.end_headers()
            self.wfile.write(octets)

        def log_message(self, *_: Any) -> None:
            """Suppress the log of the server."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield _write_kubeconfig(folder / "kubeconfig", server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _write_kubeconfig(path: Path, port: int) -> Path:
    config = {
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "test", "user": {"token": "t"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def _encoded(answer: tuple[int, Any]) -> tuple[int, bytes]:
    return answer[0], json.dumps(answer[1]).encode()


def _merge(there: dict[str, Any], patch: dict[str, Any]) -> None:
    """RFC 7386; an empty map is removed, because an API server omits it."""
    for key, value in patch.items():
        if isinstance(value, dict):
            _merge(there.setdefault(key, {}), value)
            if not there[key]:
                del there[key]
        elif value is None:
            there.pop(key, None)
        else:
            there[key] = value


def _failure(code: int, reason: str, message: str) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}
