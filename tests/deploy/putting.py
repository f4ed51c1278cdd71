"""Objects put onto an API server and taken away again over one connection: for tests in which kubectl is not judged.

The law: as `kubectl apply --server-side`, and what cannot be put fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tests.deploy.manifests import Manifest
from tests.kit.apiserver import ApiServer, send

_PLURALS: Final = {"NetworkPolicy": "networkpolicies"}
_APPLY: Final = "application/apply-patch+yaml"


def put(server: ApiServer, manifests: Iterable[Manifest]) -> None:
    """Make them, or make them so; namespaces have to come first."""
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
    """Where the API server has it."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{inside}/{plural}/{metadata['name']}"
