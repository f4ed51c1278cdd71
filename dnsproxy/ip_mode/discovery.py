"""Asks an API server which version of MutatingAdmissionPolicy it serves.

The law: only an answer of the server says that there is none; a failed request is an error with status 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from dnsproxy.doctor.judge.mutating_admission import VERSIONS, ApiResources, resources_path, served_version, why_none
from sidecar.kubernetes.cluster import could_not_ask
from sidecar.kubernetes.errors import ApiError, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.one_shot import get_object
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_SECONDS: Final = 10.0
"""For one answer of the API server."""


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


@dataclass(frozen=True, slots=True)
class Served:
    """What an API server serves."""

    version: str
    """`v1`, `v1beta1`, or empty."""
    why_none: str = ""
    """The reason for an empty version, and what to do instead."""


async def find_version(client: ApiClient) -> Served:
    """The version to use. Raises StartError with status 3."""
    try:
        version = served_version({version: await _resources(client, version) for version in VERSIONS})
        if version:
            return Served(version)
        server = await get_object(client, "/version", _Version, seconds=_SECONDS)
    except ApiError as error:
        raise StartError(could_not_ask(client.cluster, error), status=ExitStatus.UNKNOWN) from None
    return Served("", why_none(server.git_version))


async def _resources(client: ApiClient, version: str) -> tuple[str, ...]:
    try:
        return (await get_object(client, resources_path(version), ApiResources, seconds=_SECONDS)).names
    except NotFound:
        return ()
