"""Last event: what the installers of a cluster reported last, read from their Events.

The law: the newest Event counts, so a success hides the failures before it. Events expire after about an hour. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from dnsproxy.install.report.event_reasons import INSTALLER, REPAIRED, UNDONE
from sidecar.kubernetes.objects import ObjectMeta
from sidecar.values.write_backoff import LONGEST

OF_INSTALLERS: Final = f"reportingController={INSTALLER.controller}"
"""The field selector of their Events."""


class SeenEvent(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of an Event that count."""

    metadata: ObjectMeta
    event_time: str | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    reason: str = ""
    note: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last Event of an installer."""

    time: str
    """RFC 3339."""
    reason: str
    note: str
    """May contain text from the cluster."""
    warns: bool
    instance: str = ""
    """The host or pod of the program."""


def find_last(events: Iterable[SeenEvent]) -> LastEvent | None:
    """The newest Event of an installer; None if there is none."""
    ours = [one for one in events if one.reporting_controller == INSTALLER.controller and one.event_time]
    if not ours:
        return None
    # The API server writes all times in UTC and with microseconds, so they sort as text.
    last = max(ours, key=lambda one: one.event_time or "")
    return LastEvent(last.event_time or "", last.reason, last.note, last.type == "Warning", last.reporting_instance)


def keeps_the_stanza(event: LastEvent, now: datetime) -> bool:
    """Whether its program may restore the stanza again: it did, or was kept from it, within two of its pauses."""
    try:
        age = (now - datetime.fromisoformat(event.time)).total_seconds()
    except (TypeError, ValueError):  # not the API server's form
        return False
    return event.reason in (REPAIRED.name, UNDONE.name) and abs(age) < 2 * LONGEST
