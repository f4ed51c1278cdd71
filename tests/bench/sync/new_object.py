"""An object to create: the requests that make it, and the hostname that is answered after the last of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

MERGE_PATCH: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the API server."""

    method: str
    path: str
    body: dict[str, Any]
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class NewObject:
    """An object that does not exist yet."""

    kind: str
    hostname: str
    path: str
    """Where it is, once it is created."""
    requests: tuple[Request, ...]
    """Until the last one is answered, nothing serves its hostname."""
