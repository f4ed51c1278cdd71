"""Which Event of the installers counts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dnsproxy.install.report.event_reasons import INSTALLER
from dnsproxy.install.report.last_event import LastEvent, SeenEvent, find_last


def event(time: str | None, reason: str, sort: str = "Normal", **fields: Any) -> SeenEvent:
    metadata = {"name": f"dnsproxy-install-{reason.lower()}", "namespace": "switchback"}
    body = {"metadata": metadata, "eventTime": time, "reason": reason, "type": sort, "note": f"because {reason}"}
    return msgspec.convert({**body, "reportingController": INSTALLER.controller, **fields}, SeenEvent)


FAILED = event("2026-01-02T03:04:05.000000Z", "InstallFailed", "Warning")
INSTALLED = event("2026-01-02T03:09:05.000000Z", "StanzaInstalled")


def test_a_failure_is_kept_until_a_success() -> None:
    assert find_last([FAILED]) == LastEvent(
        "2026-01-02T03:04:05.000000Z", "InstallFailed", "because InstallFailed", warns=True
    )
    for order in ([FAILED, INSTALLED], [INSTALLED, FAILED]):
        last = find_last(order)
        assert last is not None
        assert (last.reason, last.warns) == ("StanzaInstalled", False)


@pytest.mark.parametrize(
    "other",
    [
        event("2027-01-01T00:00:00.000000Z", "Other", reportingController="kubelet"),
        event("2027-01-01T00:00:00.000000Z", "Other", reportingController=""),
        event(None, "Other"),
    ],
    ids=["another controller", "no controller", "no time"],
)
def test_events_of_others_do_not_count(other: SeenEvent) -> None:
    assert find_last([other]) is None
    last = find_last([other, FAILED])
    assert last is not None
    assert last.reason == "InstallFailed"
