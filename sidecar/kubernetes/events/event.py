"""Kubernetes Events of a program: their content, and how often one is created.

The law: an Event is in the namespace of the object that it is about. For each reason there is at most one in 5 minutes,
with the number of those suppressed before it. An Event that is sent twice is created once. Text from the cluster is on
one line and cut. Pure.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final
from urllib.parse import quote
from zlib import crc32

from sidecar.values.text import one_line

GROUP: Final = "events.k8s.io"
PLURAL: Final = "events"
EVERY: Final = 300.0
"""Seconds between two Events of one reason."""
_LONGEST_NOTE: Final = 1000
"""Octets; the API server rejects an Event with a note of more than 1024 octets."""
_LONGEST_INSTANCE: Final = 128


@dataclass(frozen=True, slots=True)
class Reporter:
    """The program that creates Events."""

    controller: str
    """Its name, `DOMAIN/NAME`; field selectors find its Events by it."""
    action: str
    """What it does to the objects, in one word."""
    name_prefix: str
    """Of the names of its Events (RFC 1123)."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why there is an Event."""

    name: str
    """In UpperCamelCase."""
    warns: bool = False
    """Whether a user should act."""


@dataclass(frozen=True, slots=True)
class About:
    """The object that an Event is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """The time of the last Event of each reason, and the number suppressed since."""

    last: Mapping[Reason, float] = field(default_factory=lambda: MappingProxyType({}))
    suppressed: Mapping[Reason, int] = field(default_factory=lambda: MappingProxyType({}))


def admit(limit: Limit, reason: Reason, now: float) -> tuple[Limit, int | None]:
    """The limit after one more Event, and the number suppressed before it; None: suppress this one too."""
    suppressed = limit.suppressed.get(reason, 0)
    if reason in limit.last and now - limit.last[reason] < EVERY:
        return Limit(limit.last, {**limit.suppressed, reason: suppressed + 1}), None
    return Limit({**limit.last, reason: now}, {**limit.suppressed, reason: 0}), suppressed


def event_path(about: About) -> str:
    """The path to create an Event about an object."""
    return f"/apis/{GROUP}/v1/namespaces/{quote(about.namespace, safe='')}/{PLURAL}"


def make_event(
    reporter: Reporter, about: About, reason: Reason, note: str, *, suppressed: int, time: datetime, instance: str
) -> bytes:
    """The body of the request; `time` is in UTC, `instance` the name of the pod."""
    more = f" (and {suppressed} more of these since the last Event)" if suppressed else ""
    text = f"{one_line(note)}{more}"
    regarding = {"apiVersion": "v1", "kind": about.kind, "namespace": about.namespace, "name": about.name}
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Event",
        "metadata": {"name": _name(reporter, reason, time, instance), "namespace": about.namespace},
        "eventTime": time.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": reporter.controller,
        "reportingInstance": instance[:_LONGEST_INSTANCE] or "unknown",
        "action": reporter.action,
        "reason": reason.name,
        "regarding": {**regarding, **({"uid": about.uid} if about.uid else {})},
        "note": text.encode("utf-8", "replace")[:_LONGEST_NOTE].decode("utf-8", "ignore"),
        "type": "Warning" if reason.warns else "Normal",
    }
    return json.dumps(body).encode()


def _name(reporter: Reporter, reason: Reason, time: datetime, instance: str) -> str:
    """The same name for the same Event, so that one that is sent twice is created once (RFC 1123)."""
    told = crc32(f"{instance} {reason.name}".encode("utf-8", "replace"))
    return f"{reporter.name_prefix}-{told:08x}-{int(time.timestamp() * 1e6):x}"
