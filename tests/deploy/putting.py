"""Puts objects onto an API server and removes them, over one connection, for tests that do not test kubectl.

The law: like `kubectl apply --server-side`; an object that the API server rejects is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tests.deploy.manifests import Manifest
from tests.kit.apiserver import ApiServer, send

_PLURALS: Final = {
    "NetworkPolicy": "networkpolicies",
    "Ingress": "ingresses",
    "IngressClass": "ingressclasses",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
}
_APPLY: Final = "application/apply-patch+yaml"


def put(server: ApiServer, manifests: Iterable[Manifest]) -> None:
    """Create or update them; namespaces must come first."""
    with server.connection() as connection:
        for one in manifests:
            path = f"{path_of(one)}?fieldManager=test&force=true"
            send(connection, "PATCH", path, one, content_type=_APPLY)


def take_away(server: ApiServer, manifests: Iterable[Manifest]) -> None:
    """Delete them."""
    with server.connection() as connection:
        for one in manifests:
            send(connection, "DELETE", path_of(one), None)


def path_of(manifest: Manifest) -> str:
    """The path of the object on the API server."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{inside}/{plural}/{metadata['name']}"
