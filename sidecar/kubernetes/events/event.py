"""Kubernetes Events of a program: their content, and how often one is created.

The law: an Event is in the namespace of the object that it is about; `default` for one without. For each object and
reason there is at most one in 5 minutes, with the number of those suppressed before it. An Event that is sent twice is
created once. Text from the cluster is on one line and cut. Pure.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
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
_REMEMBERED: Final = 1000
"""Objects and reasons."""


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
    api_version: str = "v1"


Kept = tuple[str, str, str, Reason]
"""Kind, namespace and name of an object, and a reason."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The time of the last Event of each object and reason, and the number suppressed since."""

    last: Mapping[Kept, float] = field(default_factory=lambda: MappingProxyType({}))
    suppressed: Mapping[Kept, int] = field(default_factory=lambda: MappingProxyType({}))


def admit(limit: Limit, about: About, reason: Reason, now: float) -> tuple[Limit, int | None]:
    """The limit after one more Event, and the number suppressed before it; None: suppress this one too."""
    key = about.kind, about.namespace, about.name, reason
    suppressed = limit.suppressed.get(key, 0)
    if key in limit.last and now - limit.last[key] < EVERY:
        return Limit(limit.last, {**limit.suppressed, key: suppressed + 1}), None
    # Objects come and go: what is old is forgotten before it is too much.
    old = now - EVERY if len(limit.last) >= _REMEMBERED else -inf
    last = {one: at for one, at in limit.last.items() if at > old}
    counts = {one: count for one, count in limit.suppressed.items() if one in last}
    return Limit({**last, key: now}, {**counts, key: 0}), suppressed


def namespace_of(about: About) -> str:
    """Where the Events about an object are: an object without a namespace has them in `default`, as with client-go."""
    return about.namespace or "default"


def event_path(about: About) -> str:
    """The path to create an Event about an object."""
    return f"/apis/{GROUP}/v1/namespaces/{quote(namespace_of(about), safe='')}/{PLURAL}"


def make_event(
    reporter: Reporter,
    about: About,
    reason: Reason,
    note: str,
    *,
    suppressed: int,
    time: datetime,
    instance: str,
    name: str = "",
) -> bytes:
    """The body of the request; `time` is in UTC, `instance` the name of the pod.

    `name` is for an Event that several instances report alike: the API server keeps the first one of a name.
    """
    more = f" (and {suppressed} more of these since the last Event)" if suppressed else ""
    text = f"{one_line(note)}{more}"
    regarding = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
    }
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Event",
        "metadata": {"name": name or _name(reporter, reason, time, instance), "namespace": namespace_of(about)},
        "eventTime": time.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": reporter.controller,
        "reportingInstance": instance[:_LONGEST_INSTANCE] or "unknown",
        "action": reporter.action,
        "reason": reason.name,
        "regarding": {key: text for key, text in regarding.items() if text},
        "note": text.encode("utf-8", "replace")[:_LONGEST_NOTE].decode("utf-8", "ignore"),
        "type": "Warning" if reason.warns else "Normal",
    }
    return json.dumps(body).encode()


def _name(reporter: Reporter, reason: Reason, time: datetime, instance: str) -> str:
    """The same name for the same Event, so that one that is sent twice is created once (RFC 1123)."""
    told = crc32(f"{instance} {reason.name}".encode("utf-8", "replace"))
    return f"{reporter.name_prefix}-{told:08x}-{int(time.timestamp() * 1e6):x}"
