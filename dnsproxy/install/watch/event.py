"""Event: what a watcher tells in the cluster, as a Kubernetes Event, and how often.

The law: an Event lies beside the object that it is about, in that object's namespace; of one reason there is one in
some minutes, which says how many it stands for. Text from the cluster is on one line and cut. Pure.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from sidecar.values.text import one_line

GROUP: Final = "events.k8s.io"
PLURAL: Final = "events"
CONTROLLER: Final = "switchback.dev/dnsproxy-install"
EVERY: Final = 300.0
"""Seconds between two Events of one reason."""
_LONGEST_NOTE: Final = 1000
"""Characters; the API server takes 1024 octets, and a text that it does not take is told nobody."""
_LONGEST_INSTANCE: Final = 128


class Reason(Enum):
    """What is told; the value is the Event's `reason`."""

    INSTALLED = "StanzaInstalled"
    REPAIRED = "StanzaRepaired"
    MOVED = "StanzaMoved"
    UNDONE = "StanzaUndone"
    REFUSED = "StanzaRefused"
    NOT_LOADED = "StanzaNotLoaded"

    @property
    def warns(self) -> bool:
        """Whether a person should do something."""
        return self in (Reason.UNDONE, Reason.REFUSED, Reason.NOT_LOADED)


@dataclass(frozen=True, slots=True)
class About:
    """The object that an Event is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """When each reason was told last, and how often it was not told since."""

    told: Mapping[Reason, float] = field(default_factory=lambda: MappingProxyType({}))
    kept: Mapping[Reason, int] = field(default_factory=lambda: MappingProxyType({}))


def admit(limit: Limit, reason: Reason, now: float) -> tuple[Limit, int | None]:
    """The limit after one more of a reason, and how many were kept back before it; None: keep this one back too."""
    kept = limit.kept.get(reason, 0)
    if reason in limit.told and now - limit.told[reason] < EVERY:
        return Limit(limit.told, {**limit.kept, reason: kept + 1}), None
    return Limit({**limit.told, reason: now}, {**limit.kept, reason: 0}), kept


def event_path(about: About) -> str:
    """Where it is made."""
    return f"/apis/{GROUP}/v1/namespaces/{quote(about.namespace, safe='')}/{PLURAL}"


def make_event(about: About, reason: Reason, note: str, *, kept: int, time: datetime, instance: str) -> bytes:
    """The body; `time` is in UTC, `instance` the pod's name."""
    more = f" (and {kept} more of these since the last one that was told)" if kept else ""
    text = f"{one_line(note)}{more}"
    regarding = {"apiVersion": "v1", "kind": about.kind, "namespace": about.namespace, "name": about.name}
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Event",
        "metadata": {"generateName": "dnsproxy-install-", "namespace": about.namespace},
        "eventTime": time.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": CONTROLLER,
        "reportingInstance": instance[:_LONGEST_INSTANCE] or "unknown",
        "action": "Install",
        "reason": reason.value,
        "regarding": {**regarding, **({"uid": about.uid} if about.uid else {})},
        "note": text.encode("utf-8", "replace")[:_LONGEST_NOTE].decode("utf-8", "ignore"),
        "type": "Warning" if reason.warns else "Normal",
    }
    return json.dumps(body).encode()
