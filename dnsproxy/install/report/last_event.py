"""Last event: what the installers of a cluster reported last, read from their Events.

The law: the newest Event counts, so a success hides the failures before it. Events expire after about an hour. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from dnsproxy.install.report.event_reasons import INSTALLER
from sidecar.kubernetes.objects import ObjectMeta

OF_INSTALLERS: Final = f"reportingController={INSTALLER.controller}"
"""The field selector of their Events."""


class SeenEvent(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of an Event that count."""

    metadata: ObjectMeta
    event_time: str | None = None
    reporting_controller: str = ""
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


def find_last(events: Iterable[SeenEvent]) -> LastEvent | None:
    """The newest Event of an installer; None if there is none."""
    ours = [one for one in events if one.reporting_controller == INSTALLER.controller and one.event_time]
    if not ours:
        return None
    # The API server writes all times in UTC and with microseconds, so they sort as text.
    last = max(ours, key=lambda one: one.event_time or "")
    return LastEvent(last.event_time or "", last.reason, last.note, last.type == "Warning")
