"""Writes the changes of a plan: Services of our namespace, each in one guarded request.

The law: nothing is forced. A conflict means that another writer was faster: the watch shows its state, and the next
plan starts from there. A change that fails moves no other. write_pace.py decides when one may be written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import structlog

from dnsproxy.cluster_dns.operate_objects import MANAGER
from dnsproxy.operate.decide.plan import Change, Create, Delete, Patch
from dnsproxy.operate.decide.route_manifest import manifest_of, patch_of
from dnsproxy.operate.decide.write_pace import WritePace, after_failure, after_success, before_write, in_place
from sidecar.kubernetes.errors import ApiError, Conflict, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.values.text import one_line

SECONDS: Final = 10.0
"""For one answer of the API server."""
_WITHOUT_RIGHT: Final = ("cannot create", "cannot patch", "cannot delete")
"""What the API server says to an account without a right."""
_JSON: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"

log = structlog.get_logger("dnsproxy.operate")


class ServiceWriter:
    """Writes into one namespace."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.faults: dict[str, str] = {}
        """By name of a Service: why its last write failed, or waits."""
        self.written = 0
        """Successful writes so far."""
        self.errors: Counter[str] = Counter()
        """Failed writes by ApiError.cause."""
        self._client = client
        self._namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/services"
        self._paces: dict[str, WritePace] = {}
        self._refused: set[str] = set()
        """The names of Services whose last write failed: that is why the next one waits."""

    async def write(self, changes: Iterable[Change], *, now: float) -> list[Change]:
        """Write those of the wanted changes that may be written; returns the written ones. `now` as in WritePace."""
        wanted = {change.route.name: change for change in changes}
        self.faults = {name: fault for name, fault in self.faults.items() if name in wanted}
        self._refused &= wanted.keys()
        for name in self._paces.keys() - wanted.keys():
            self._paces[name] = in_place(self._paces[name], now=now)
        written = []
        for name, change in wanted.items():
            pace = self._paces[name] = before_write(self._paces.get(name), change, now=now)
            if pace.due <= now:
                written += [change] if await self._write_one(name, change, pace, now) else []
            elif pace.backoff.losses and name not in self._refused:
                self._note_fault(name, "another program keeps changing it, so the next write waits")
        return written

    def due(self, changes: Iterable[Change]) -> float | None:
        """When the next of these changes may be written; None without any."""
        paces = (self._paces.get(change.route.name) for change in changes)
        return min((pace.due for pace in paces if pace is not None), default=None)

    async def _write_one(self, name: str, change: Change, pace: WritePace, now: float) -> bool:
        try:
            await self._send(change)
        except (Conflict, NotFound) as error:
            # Not found: it was deleted after it was read.
            log.info("another writer was faster", service=f"{self._namespace}/{name}", cause=one_line(str(error)))
            self._paces[name] = after_failure(pace, now=now, conflict=True)
            return False
        except ApiError as error:
            self.errors[error.cause] += 1
            # A quota and an admission policy refuse with the same status as a missing right.
            refused = isinstance(error, Forbidden) and any(word in str(error) for word in _WITHOUT_RIGHT)
            missing = ", create, patch and delete on services there are needed" if refused else ""
            self._refused.add(name)
            self._note_fault(name, f"not written{missing}: {error}")
            self._paces[name] = after_failure(pace, now=now, conflict=False)
            return False
        self.written += 1
        self._refused.discard(name)
        self.faults.pop(name, None)
        self._paces[name] = after_success(pace, change, now=now)
        _log_written(change, f"{self._namespace}/{name}")
        return True

    def _note_fault(self, name: str, fault: str) -> None:
        if self.faults.get(name) != fault:
            log.warning("route Service not written", service=f"{self._namespace}/{name}", cause=one_line(fault))
        self.faults[name] = fault

    async def _send(self, change: Change) -> None:
        """Raises ApiError."""
        method, path, body, kind = self._request(change)
        params = {} if isinstance(change, Delete) else {"fieldManager": MANAGER}
        content = json.dumps(body).encode()
        await self._client.change(method, path, params, content, content_type=kind, seconds=SECONDS)

    def _request(self, change: Change) -> tuple[str, str, dict[str, Any], str]:
        """Method, path, body and content type."""
        path = f"{self._path}/{change.route.name}"
        match change:
            case Create(route):
                return "POST", self._path, manifest_of(route, namespace=self._namespace), _JSON
            case Patch(before, route):
                return "PATCH", path, patch_of(before, route), _MERGE_PATCH
            case Delete(route):
                return "DELETE", path, {"preconditions": {"resourceVersion": route.resource_version}}, _JSON


def _log_written(change: Change, service: str) -> None:
    route = change.route
    log.info(
        "route Service written",
        change=type(change).__name__.lower(),
        service=service,
        relay_to=route.relay_to,
        port_backends=route.port_backends,
        answers_for=route.subjects or "nothing",
        headers=route.headers,
        endpoint_headers=route.endpoint_headers,
    )
