"""The Events about addresses that no status names: one for those of each class or Gateway.

The law: of several Events about one object for one reason the API server gets only the first, so one has all. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.operate.decide.facts import parse_subject
from dnsproxy.operate.report.event_reasons import about_service, about_subject
from sidecar.kubernetes.events.event import About


def unknown_events(
    addresses: Iterable[UnknownAddress], to_report: Collection[str], *, service: str
) -> list[tuple[About, str]]:
    """The object and the text of each Event; `service` is dnsproxy's own, for addresses without a class or Gateway."""
    texts: dict[str, list[str]] = {}
    for one in addresses:
        if one.address in to_report:
            texts.setdefault(one.subject, []).append(one.shown)
    return [
        (about_subject(parse_subject(subject)) if subject else about_service(service), "; ".join(shown))
        for subject, shown in texts.items()
    ]
