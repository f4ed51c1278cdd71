"""Pods under the quotas of our manifests, on an API server without a controller manager.

The law: a dry run, so nothing stays but the status of the quota.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.kit.apiserver import ApiServer
from tests.kit.polling import poll_until


def set_quota_status(server: ApiServer, namespace: str, name: str) -> None:
    """As the controller manager does: until then the API server admits no pod under the quota."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/{name}"
    hard = server.request("GET", path)["spec"]["hard"]
    status = {"status": {"hard": hard, "used": {"pods": "0"}}}
    server.request("PATCH", f"{path}/status", status, content_type="application/merge-patch+json")


def admitted_pod(server: ApiServer, namespace: str, pod: Mapping[str, Any]) -> Any:
    """The pod as the API server would store it; its admission reads the status of a quota at its own time."""
    admitted: list[Any] = []

    def is_admitted() -> bool:
        try:
            admitted.append(server.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod))
        except AssertionError as error:
            if "status unknown for quota" not in str(error):
                raise
        return bool(admitted)

    poll_until(is_admitted, "the status of the quota is read", seconds=30)
    return admitted[0]
