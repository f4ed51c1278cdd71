"""The patch that sets the ipMode of a status that exists, as the policy does while it is written.

The law: a status that has the wanted ipMode everywhere gives no operation, and so no write; the first operation tests
the resourceVersion, so that of two writers one has to read again. RFC 6902. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sidecar.kubernetes.structs.network import LoadBalancerPoint

Operation = dict[str, Any]
CONTENT_TYPE: Final = "application/json-patch+json"


def make_patch(entries: Sequence[LoadBalancerPoint], *, mode: str, resource_version: str) -> list[Operation]:
    """The operations that set every entry with an address to `mode`; empty if they are so."""
    changes = [
        {"op": "add", "path": f"/status/loadBalancer/ingress/{number}/ipMode", "value": mode}
        for number, entry in enumerate(entries)
        if entry.ip and entry.ip_mode != mode
    ]
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version}
    return [test, *changes] if changes else []
