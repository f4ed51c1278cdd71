"""Service event: what one Service lacks for one reason, as a Kubernetes Event about it.

The law: all agents name the same Event alike, by the Service's uid, the reason and the note, so the API server keeps
the first one. Reports that exclude nothing (`NOTES`) make no Event: they are true of healthy Services, and last.
A note never names a Service of another namespace: the readers of an Event may be another tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from typing import Final

from sidecar.kubernetes.events.event import About, Reason, Reporter
from wholeip.mappings import reports
from wholeip.mappings.plan import Part
from wholeip.mappings.reports import NOTES, Report

AGENT: Final = Reporter("switchback.dev/wholeip", action="Map", name_prefix="wholeip")
_SHOWN: Final = 5
"""Details of one reason; a Service may have thousands of bad ports."""
_LONGEST: Final = 160
"""Characters of one detail, so that all of them fit into a note."""
_NAME_OCTETS: Final = 16


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """One Event."""

    name: str
    """RFC 1123, the same from every agent."""
    about: About
    reason: Reason
    note: str


def event_reason(reason: reports.Reason) -> Reason:
    """The reason for a report: `no-endpoint` becomes the warning `NoEndpoint`."""
    return Reason("".join(word.capitalize() for word in reason.value.split("-")), warns=True)


def events_of(service: str, part: Part) -> Iterator[ServiceEvent]:
    """The Events about a Service (NAMESPACE/NAME), one for each reason."""
    namespace, _, name = service.rpartition("/")
    about = About("Service", namespace, name, part.uid)
    # Its reports are sorted.
    for reason, found in groupby(part.reports, key=lambda one: one.reason):
        if reason not in NOTES:
            note = _join(dict.fromkeys(map(_detail, found)))
            yield ServiceEvent(_name(about, reason, note), about, event_reason(reason), note)


def _detail(report: Report) -> str:
    other = report.other
    if not other or other.rpartition("/")[0] == report.service.rpartition("/")[0]:
        return report.detail
    return report.detail.replace(f"the older {other}", "an older Service of another namespace")


def _join(details: Iterable[str]) -> str:
    texts = [one if len(one) <= _LONGEST else f"{one[:_LONGEST]}..." for one in details]
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return "; ".join([*texts[:_SHOWN], *more])


def _name(about: About, reason: reports.Reason, note: str) -> str:
    """The uid identifies the Service; without a uid, its name does."""
    key = "\0".join([about.uid or about.name, reason.value, note])
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_NAME_OCTETS).hexdigest()
    return f"{AGENT.name_prefix}-{digest}"
