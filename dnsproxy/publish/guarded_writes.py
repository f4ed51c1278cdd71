"""Writes to objects in a cluster: server-side apply and delete.

The law: a write takes effect only on the version of the object that was read, and a new object is created or the write
fails. So an object of another writer is never overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dnsproxy.publish.configmaps.manifests import MANAGER
from sidecar.kubernetes.http import ApiClient

REQUEST_SECONDS: Final = 15.0
ATTEMPTS: Final = 5
"""Reads and writes of the same objects, before a publisher reports that another writer keeps changing them."""
_NEW: Final = "1"
"""A resourceVersion that no object has: an apply with it creates the object, or fails if the object exists."""


async def apply(
    client: ApiClient, path: str, manifest: Mapping[str, Any], *, version: str | None, force: bool
) -> bytes:
    """Create the object (version None) or change the version that was read; the object as stored. Raises ApiError.

    `force` also takes over fields that another field manager owns.
    """
    body = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version or _NEW}}
    return await client.change(
        "PATCH",
        path,
        {"fieldManager": MANAGER, **({"force": "true"} if force else {})},
        json.dumps(body).encode(),
        content_type="application/apply-patch+yaml",
        seconds=REQUEST_SECONDS,
    )


async def delete(client: ApiClient, path: str, *, version: str) -> None:
    """Delete the version that was read. Raises ApiError."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": version}}
    body = json.dumps(options).encode()
    await client.change("DELETE", path, {}, body, content_type="application/json", seconds=REQUEST_SECONDS)
