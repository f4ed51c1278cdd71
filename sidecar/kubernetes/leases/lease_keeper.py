"""Keeps the Lease: takes it, renews it, and gives it back at the end.

The law: a thin shell over leading.py, which decides. Every write names the resourceVersion that was read. While the API
server does not answer, nobody leads, and nothing has to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

import msgspec
import structlog
import trio

from sidecar.kubernetes.errors import ApiError, Conflict, Garbled, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.leases.leading import (
    DURATION,
    RENEW,
    Leading,
    LeaseStep,
    SeenLease,
    after_look,
    after_write,
    leads,
    next_step,
)
from sidecar.kubernetes.objects import ObjectMeta
from sidecar.kubernetes.protocol import FAULTS
from sidecar.values.text import cut, one_line

SECONDS: Final = 3.0
"""For one answer of the API server."""
_PATH: Final = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
_LAST_SECONDS: Final = 1.0
"""To give it back at the end."""
_LONGEST: Final = 320
"""Characters of a holder: a host and a number have fewer."""

Annotate = Callable[[SeenLease], Mapping[str, str]]
"""The annotations to write over a Lease that was seen; called once before each write."""


def _nothing(_seen: SeenLease) -> Mapping[str, str]:
    return {}


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None


class _Metadata(ObjectMeta, frozen=True):
    annotations: dict[str, str] | None = None


class Lease(msgspec.Struct, frozen=True):
    """coordination.k8s.io/v1 Lease: its holder, and when that renewed it."""

    metadata: _Metadata
    spec: _Spec | None = None


class LeaseKeeper:
    """Tries to hold the Lease `name`; `identity` is unique for each process, `logger` the name of a log."""

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        name: str,
        *,
        identity: str,
        logger: str,
        annotate: Annotate = _nothing,
        on_look: Callable[[], None] = lambda: None,
    ) -> None:
        self.state = Leading()
        self.fault = ""
        """Why the Lease could not be read or written."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._annotate = annotate
        self._on_look = on_look
        self._log = structlog.get_logger(logger)
        self._path = _PATH.format(namespace)
        self._identity = identity

    @property
    def leads(self) -> bool:
        """Whether this replica leads now."""
        return leads(self.state, identity=self._identity, now=trio.current_time())

    @property
    def holder(self) -> str:
        """The identity in the Lease as it was last seen, cut to be shown: any text may be there."""
        return cut(self.state.seen.holder, _LONGEST)

    async def run(self) -> NoReturn:
        """Try until cancelled; a held Lease is given back then."""
        try:
            while True:
                await self._try()
                self._on_look()
                await trio.sleep(RENEW)
        finally:
            if self.leads:
                with trio.move_on_after(_LAST_SECONDS, shield=True):
                    await self._give_back()

    async def _try(self) -> None:
        before = self.leads
        try:
            await self._look_and_write()
            self.fault = ""
        except Conflict:
            # Another replica was faster; the next look shows it.
            pass
        except ApiError as error:
            if self.fault != str(error):
                self._log.warning(
                    "the Lease cannot be held", lease=f"{self._namespace}/{self._name}", cause=one_line(str(error))
                )
            self.fault = str(error)
        if self.leads != before:
            self._log.info("leading" if self.leads else "not leading", holder=self.holder)

    async def _look_and_write(self) -> None:
        """Raises ApiError."""
        seen = await self._look()
        self.state = after_look(self.state, seen, identity=self._identity, now=trio.current_time())
        step = next_step(self.state, identity=self._identity, now=trio.current_time())
        if step is not LeaseStep.WAIT:
            sent = trio.current_time()
            written = await self._write(self._identity, create=step is LeaseStep.CREATE)
            self.state = after_write(self.state, written, now=sent)

    async def _look(self) -> SeenLease:
        try:
            body = await self._client.get(f"{self._path}/{self._name}", seconds=SECONDS)
        except NotFound:
            return SeenLease()
        return _read(body)

    async def _give_back(self) -> None:
        try:
            await self._write("", create=False)
        except ApiError as error:
            # The next replica takes it after DURATION.
            self._log.info("the Lease was not given back", cause=one_line(str(error)))

    async def _write(self, holder: str, *, create: bool) -> SeenLease:
        """Raises ApiError: Conflict if another replica was faster."""
        body = json.dumps(self._manifest(holder)).encode()
        method, path = ("POST", self._path) if create else ("PUT", f"{self._path}/{self._name}")
        answer = await self._client.change(
            method, path, {"fieldManager": self._name}, body, content_type="application/json", seconds=SECONDS
        )
        return _read(answer)

    def _manifest(self, holder: str) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        metadata: dict[str, Any] = {"name": self._name, "namespace": self._namespace}
        annotations = dict(self._annotate(self.state.seen))
        if annotations:
            metadata["annotations"] = annotations
        metadata["labels"] = {"app.kubernetes.io/part-of": "switchback"}
        if self.state.seen.version:
            metadata["resourceVersion"] = self.state.seen.version
        spec = {"holderIdentity": holder, "leaseDurationSeconds": int(DURATION), "renewTime": now}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _read(body: bytes) -> SeenLease:
    """Raises ApiError."""
    try:
        lease = msgspec.json.decode(body, type=Lease)
    except FAULTS as error:
        raise Garbled(f"the Lease cannot be read: {error}") from error
    spec = lease.spec or _Spec()
    annotations = lease.metadata.annotations or {}
    return SeenLease(
        spec.holder_identity or "", lease.metadata.resource_version, _age(spec.renew_time or ""), annotations
    )


def _age(renewed: str) -> float:
    """As SeenLease.age."""
    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(renewed)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
