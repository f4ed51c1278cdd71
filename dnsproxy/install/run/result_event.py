"""Result event: the result of an install as an Event about dnsproxy's own Service, and the last Event that there is.

The law: that Service outlives a Job, its pods and their logs. Events are best effort: one that cannot be created or
read never changes a result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.requests import SERVICE, Denied, Fault, Kind, Request, Unreadable, fault_of
from dnsproxy.install.report import event_reasons
from dnsproxy.install.report.last_event import OF_INSTALLERS, LastEvent, SeenEvent, find_last
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.events.event import GROUP, PLURAL, About, Reason, event_path, make_event
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.one_shot import get_object, list_all
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.watch_policy import Pace
from sidecar.loop.side_by_side import read_each

_SECONDS: Final = 10.0
"""Seconds for one answer of the API server."""
_EVENT: Final = Kind("Event", PLURAL, GROUP, SeenEvent)


class _Identity(msgspec.Struct, frozen=True):
    metadata: Metadata


async def record_result(client: ApiClient, own: ObjectRef, reason: Reason, note: str) -> str:
    """Create an Event about dnsproxy's Service. Returns why it could not be created, or ``."""
    about = About("Service", own.namespace, own.name, await _uid_of(client, own))
    body = make_event(
        event_reasons.INSTALLER, about, reason, note, suppressed=0, time=datetime.now(UTC), instance=os.uname().nodename
    )
    try:
        await client.change("POST", event_path(about), {}, body, content_type="application/json", seconds=_SECONDS)
    except ApiError as error:
        return f"there is no Event in namespace {own.namespace}: {error}"
    return ""


@dataclass(frozen=True, slots=True)
class ReadEvents:
    """What the Events of some namespaces say."""

    last: LastEvent | None = None
    """The last one of an installer; None if there is none among those that were read."""
    faults: tuple[Fault, ...] = ()
    """For each namespace whose Events could not be read."""


async def read_last_event(client: ApiClient, namespaces: Iterable[str]) -> ReadEvents:
    """The last Event of an installer in these namespaces. Never raises."""
    found = await read_each(lambda namespace: _read_events(client, namespace), dict.fromkeys(namespaces))
    faults = tuple(one for one in found if isinstance(one, Fault))
    return ReadEvents(find_last(event for one in found if not isinstance(one, Fault) for event in one), faults)


async def _read_events(client: ApiClient, namespace: str) -> list[SeenEvent] | Fault:
    request = Request(_EVENT, namespace)
    collection = Collection("Event", request.path, SeenEvent, field_selector=OF_INSTALLERS)
    try:
        found = await list_all(client, collection, pace=Pace(list_timeout=_SECONDS))
    except NotFound:
        return []
    except Forbidden as error:
        return fault_of(request, Denied(str(error)))
    except ApiError as error:
        return fault_of(request, Unreadable(str(error)))
    return [one for one in found.values() if isinstance(one, SeenEvent)]


async def _uid_of(client: ApiClient, own: ObjectRef) -> str:
    """The Service's uid, without which `kubectl describe` does not show its Events."""
    try:
        found = await get_object(client, Request(SERVICE, own.namespace, own.name).path, _Identity, seconds=_SECONDS)
    except ApiError:
        return ""
    return found.metadata.uid
