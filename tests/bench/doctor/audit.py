"""The requests of a command, from the API server's audit log. Pure.

The law: a request counts once, when it is answered. https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

POLICY: Final[dict[str, Any]] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": ["admin"]}, {"level": "None"}],
}
"""The user of every kubeconfig of the tests; the API server's own requests are not among them."""
_LAST: Final = ("ResponseComplete", "Panic")


def parse_requests(text: str) -> list[str]:
    """Verb and address of each request, in the order of the answers."""
    return list(_requests(text))


def _requests(text: str) -> Iterator[str]:
    for line in text.splitlines():
        event = json.loads(line)
        if event["stage"] in _LAST:
            yield f"{event['verb']} {event['requestURI']}"
