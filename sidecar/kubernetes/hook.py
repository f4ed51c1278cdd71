"""Whether a Job that runs as a hook of Helm was made by Helm.

The law: `kubectl apply` of a chart's rendered text would run each hook at once, as an ordinary object. Who made an
object stands in its managed fields. https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.one_shot import get_object
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_OTHERS: Final = ("kubectl", "argocd", "kustomize-controller")
"""The beginnings of the names of programs that apply manifests, and know no hooks."""


class _Fields(msgspec.Struct, frozen=True):
    manager: str = ""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: list[_Fields] | None = None


class _Job(msgspec.Struct, frozen=True):
    metadata: _Metadata


def applied_by(managers: Iterable[str]) -> str:
    """The first of these field managers that knows no hooks, or nothing."""
    return next((one for one in managers if one.startswith(_OTHERS)), "")


async def check_hook(client: ApiClient, namespace: str, name: str) -> None:
    """Raises StartError if the Job was not made by Helm, or if that cannot be known; nothing was changed then."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
    try:
        job = await get_object(client, path, _Job, seconds=10.0)
    except ApiError as error:
        raise StartError(f"Job {namespace}/{name}: {error}; nothing was changed", status=ExitStatus.UNKNOWN) from error
    manager = applied_by(one.manager for one in job.metadata.managed_fields or ())
    if manager:
        raise StartError(
            f"Job {namespace}/{name} is a hook of Helm, and {manager} made it; nothing was changed. Delete it, and "
            "leave hooks out of what you apply: `helm template` without --dry-run=server has none",
            status=ExitStatus.NO,
        )
