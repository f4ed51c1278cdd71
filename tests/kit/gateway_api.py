"""The Gateway API on a real API server: custom resource definitions that come and go; manifests of its objects."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.kit.apiserver import TOKEN, ApiServer
from tests.kit.polling import poll_until
from tests.kit.programs import program

GROUP: Final = "gateway.networking.k8s.io"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RESOURCES: Final = ("gateways", "httproutes", "grpcroutes", "tlsroutes", "listenersets")
_SECONDS: Final = 30


def install_crds(server: ApiServer, resources: Iterable[str] = RESOURCES) -> None:
    """Install the missing definitions of the standard channel, and wait until they are served."""
    for resource in resources:
        if server.status_of(f"{CRDS}/{resource}.{GROUP}") == http.client.OK:
            continue
        manifest = Path(program("gateway-api")) / "standard" / f"{GROUP}_{resource}.yaml"
        # Send the file unparsed: the server reads YAML, and much faster than we do.
        with server.connection() as connection:
            headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/yaml"}
            connection.request("POST", CRDS, manifest.read_bytes(), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
            assert response.status == http.client.CREATED, answer
    for resource in resources:
        _wait_until(server, resource, "v1", is_served=True)


def remove_crds(server: ApiServer, resources: Iterable[str] = RESOURCES) -> None:
    """Remove the installed definitions, which deletes all their objects, and wait until they are gone."""
    paths = [f"{CRDS}/{resource}.{GROUP}" for resource in resources]
    paths = [path for path in paths if server.status_of(path) == http.client.OK]
    for path in paths:
        server.request("DELETE", path)
    poll_until(
        lambda: all(server.status_of(path) != http.client.OK for path in paths),
        "the definitions are gone",
        seconds=_SECONDS,
    )


def delete_all(server: ApiServer) -> None:
    """Delete every object of the default namespace."""
    for resource in RESOURCES:
        server.request("DELETE", _path(resource, "default"))


def serve_only(server: ApiServer, resource: str, version: str) -> None:
    """Serve only one version of a resource, as upgrades of the definitions do over the years."""
    path = f"{CRDS}/{resource}.{GROUP}"
    versions = server.request("GET", path)["spec"]["versions"]
    patch = [
        {"op": "replace", "path": f"/spec/versions/{number}/served", "value": one["name"] == version}
        for number, one in enumerate(versions)
    ]
    server.request("PATCH", path, patch, content_type="application/json-patch+json")
    for one in versions:
        _wait_until(server, resource, one["name"], is_served=one["name"] == version)


def create(server: ApiServer, resource: str, manifest: dict[str, Any]) -> None:
    """Create an object in its namespace, by default `default`; a Gateway is accepted, as by a controller."""
    path = _path(resource, manifest["metadata"].get("namespace", "default"))
    server.request("POST", path, manifest)
    if resource == "gateways":
        accept(server, f"{path}/{manifest['metadata']['name']}")


def accept(server: ApiServer, path: str) -> None:
    """Accept a Gateway, as its controller does."""
    about = {"reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [{"type": "Accepted", "status": "True", **about}]}
    server.request("PATCH", f"{path}/status", {"status": status}, content_type="application/merge-patch+json")


def delete(server: ApiServer, resource: str, name: str, *, namespace: str = "default") -> None:
    server.request("DELETE", f"{_path(resource, namespace)}/{name}")


def gateway(*listeners: dict[str, Any], name: str = "main", **spec: Any) -> dict[str, Any]:
    return _manifest("Gateway", name, {"gatewayClassName": "public", "listeners": list(listeners), **spec})


def listener(name: str, hostname: str, **more: Any) -> dict[str, Any]:
    """A Gateway's listener: HTTP on port 80, for routes of its own namespace, unless `more` overrides that."""
    return {"name": name, "protocol": "HTTP", "port": 80, "hostname": hostname, **more}


def passing_through(name: str, hostname: str) -> dict[str, Any]:
    """A listener for TLSRoutes."""
    return listener(name, hostname, protocol="TLS", port=443, tls={"mode": "Passthrough"})


def listener_set(*listeners: dict[str, Any], name: str, gateway: str = "main") -> dict[str, Any]:
    return _manifest("ListenerSet", name, {"parentRef": {"name": gateway}, "listeners": list(listeners)})


def route(kind: str, hostname: str, *, parent: str = "main", parent_kind: str = "Gateway", **about: Any) -> Any:
    """A route of the given kind, named after its hostname; `about` is for its metadata."""
    name = hostname.partition(".")[0]
    parents = [{"name": parent, "kind": parent_kind, "group": GROUP}]
    rules = [{"backendRefs": [{"name": "web", "port": 80}]}]
    return _manifest(kind, name, {"parentRefs": parents, "hostnames": [hostname], "rules": rules}, **about)


def _manifest(kind: str, name: str, spec: dict[str, Any], **about: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name, **about}, "spec": spec}


def _path(resource: str, namespace: str) -> str:
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/{resource}"


def _wait_until(server: ApiServer, resource: str, version: str, *, is_served: bool) -> None:
    path = f"/apis/{GROUP}/{version}/{resource}"
    poll_until(
        lambda: server.serves(path) if is_served else server.status_of(path) != http.client.OK,
        f"{resource} {version}: served is {is_served}",
        seconds=_SECONDS,
    )
