"""Writing: one guarded request for each ConfigMap that is to change.

The law: in the order of the edits, each whole or not at all; a conflict ends it at once, for what follows was planned
on what is no longer so. What RBAC does not allow, and what the API server cannot do, is one StartError that says which.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.install.change.config_map import ConfigMapChange, make_write
from dnsproxy.install.change.edits import Edits
from dnsproxy.install.change.refusal import Refusal
from sidecar.kubernetes.errors import ApiError, Conflict, Forbidden, NotFound, Refused
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import ExitStatus, StartError

REQUEST_SECONDS: Final = 15.0
"""For one answer of the API server; webhooks may take ten of them."""


class Changed(Exception):
    """Somebody else wrote to a ConfigMap since it was read: look again, and plan anew."""


async def write(client: ApiClient, edits: Edits) -> None:
    """Make the edits. Raises Changed, Refusal for what the API server takes from nobody, StartError with status 3."""
    for change in edits.changes:
        if change.changed:
            await _write_one(client, change)


async def _write_one(client: ApiClient, change: ConfigMapChange) -> None:
    request = make_write(change)
    name = f"ConfigMap {change.source}"
    try:
        await client.change(
            request.method,
            request.path,
            request.params,
            request.content,
            content_type=request.content_type,
            seconds=REQUEST_SECONDS,
        )
    except (Conflict, NotFound) as error:
        # Not found: it went since it was read.
        raise Changed(f"{name}: {error}") from error
    except Forbidden as error:
        where = f"{change.verb} configmaps {change.source.name} in namespace {change.source.namespace}"
        remedy = "--dry-run prints the Role that does"
        raise StartError(f"not allowed to {where}: {error}; {remedy}", status=ExitStatus.UNKNOWN) from None
    except Refused as error:
        raise Refusal(f"the API server does not take it: {error}", place=name) from None
    except ApiError as error:
        text = f"{name} may or may not be written: {error}; run this again, which finishes it"
        raise StartError(text, status=ExitStatus.UNKNOWN) from None
