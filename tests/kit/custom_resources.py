"""Custom resources on a real API server: the definitions of other projects, which come and go, and their objects."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kit.apiserver import ApiServer
from tests.kit.polling import poll_until
from tests.kit.programs import program

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SECONDS: Final = 30

FILES: Final = {
    "traefik.io": ("traefik-crds", "kubernetes-crd-definition-v1.yml"),
    "projectcontour.io": ("contour-crds", "01-crds.yaml"),
    "route.openshift.io": ("openshift-crds", "routes.crd.yaml"),
    "networking.istio.io": ("istio-crds", "customresourcedefinitions.gen.yaml"),
}
"""By group: the peer and its file."""


def definitions(group: str, plurals: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The definitions of a group as its project publishes them; all, or those of these resources."""
    peer, name = FILES[group]
    documents = yaml.load_all((Path(program(peer)) / name).read_text(), Loader=yaml.CSafeLoader)
    found = [one for one in documents if one and one.get("kind") == "CustomResourceDefinition"]
    return [one for one in found if one["spec"]["group"] == group and (not plurals or _plural(one) in plurals)]


def open_definition(plural: str, group: str, *versions: str) -> dict[str, Any]:
    """A definition that accepts any content; the first version is the one that is stored."""
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    rows = [{"name": one, "served": True, "storage": one == versions[0], "schema": anything} for one in versions]
    names = {"plural": plural, "singular": plural.removesuffix("s"), "kind": plural.removesuffix("s").capitalize()}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": rows}
    metadata = {"name": f"{plural}.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def install(server: ApiServer, found: Sequence[dict[str, Any]]) -> None:
    """Create the definitions and wait until every version is served."""
    for one in found:
        server.request("POST", CRDS, one)
    for one in found:
        for path in _served_paths(one):
            poll_until(partial(server.serves, path), f"{path} is served", seconds=_SECONDS)


def remove(server: ApiServer, found: Sequence[dict[str, Any]]) -> None:
    """Delete the definitions, which deletes all their objects, and wait until they are gone."""
    for one in found:
        server.request("DELETE", f"{CRDS}/{one['metadata']['name']}")
    for one in found:
        path = f"{CRDS}/{one['metadata']['name']}"
        poll_until(lambda path=path: server.status_of(path) != http.client.OK, f"{path} is gone", seconds=_SECONDS)  # type: ignore[misc]


def create(server: ApiServer, version: str, plural: str, name: str, body: dict[str, Any], **metadata: Any) -> str:
    """Create an object in `default`, with its status if the body has one. Returns its path."""
    folder = f"{version_path(version)}/namespaces/default/{plural}"
    kind = metadata.pop("kind")
    whole = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}} | body
    server.request("POST", folder, whole)
    path = f"{folder}/{name}"
    if "status" in body:
        set_status(server, path, body["status"])
    return path


def version_path(version: str) -> str:
    """Where the API server has a version: `GROUP/VERSION`, or `v1`."""
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def set_status(server: ApiServer, path: str, status: dict[str, Any]) -> None:
    """Write the status of an object, as its controller does."""
    subresource = path if server.status_of(f"{path}/status") != http.client.OK else f"{path}/status"
    server.request("PATCH", subresource, {"status": status}, content_type="application/merge-patch+json")


def _served_paths(definition: dict[str, Any]) -> list[str]:
    spec = definition["spec"]
    return [f"/apis/{spec['group']}/{one['name']}/{_plural(definition)}" for one in spec["versions"] if one["served"]]


def _plural(definition: dict[str, Any]) -> str:
    return str(definition["spec"]["names"]["plural"])
