"""The status of a publisher, for readiness, metrics and the status page.

The law: one publisher writes it, anything may read it at any time; plain numbers. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sidecar.admin.page.document import Fact, Frame, Level, document, facts, notes, section
from sidecar.admin.page.markup import joined

CHANGED: Final = "changed"
UNCHANGED: Final = "unchanged"
FAILED: Final = "failed"
DONE: Final = "done"

CONFLICT: Final = "conflict"
"""Another object has the name of ours."""
REFUSED: Final = "refused"
"""The API server refuses the object."""


def _results(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, 0)


@dataclass(slots=True)
class PublishStatus:
    """Counts since the start, and the present state."""

    source: str
    """Where the table is read, for people."""
    target: str
    """Where it is published."""
    reads: dict[str, int] = field(default_factory=lambda: _results(CHANGED, UNCHANGED, FAILED))
    """Reads of the table, by result."""
    writes: dict[str, int] = field(default_factory=lambda: _results(DONE, FAILED))
    names: int = 0
    """Published now."""
    excluded: dict[str, int] = field(default_factory=dict)
    """Names that cannot be published there, by reason."""
    objects: int = 0
    """Objects in the cluster that hold the names; 0 if the target is a file."""
    conflicts: int = 0
    """Objects of other writers under a name of ours."""
    published_time: float | None = None
    """When the published names were last known to equal the table, in seconds since the epoch."""
    held_back: str = ""
    """Why the last table is not published yet; empty if it is."""
    source_trouble: str = ""
    """Why the last read of the table failed; empty if it did not."""
    target_trouble: str = ""
    """Why the last attempt to publish failed; empty if it did not."""
    notes: tuple[str, ...] = ()
    """What an operator should know about the published objects."""

    def why_not_ready(self) -> str:
        """Why the program cannot do its work; empty if it can.

        While the table cannot be read, the published names stay, and so does the readiness.
        """
        if self.target_trouble:
            return self.target_trouble
        if self.published_time is None:
            return self.held_back or self.source_trouble or "nothing is published yet"
        return ""

    def is_incomplete(self) -> bool:
        """Whether the target refused a name that it could have had."""
        return any(self.excluded.get(reason) for reason in (CONFLICT, REFUSED))


class PublishCollector(Collector):
    """Registers with a CollectorRegistry and reads the status at each scrape. No label holds a hostname."""

    def __init__(self, status: PublishStatus) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """No names in advance: the registry would have to collect for them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The present metric families."""
        status = self._status
        yield _labelled("dnsproxy_publish_looks", "Reads of the table.", "result", status.reads)
        yield _labelled("dnsproxy_publish_writes", "Writes to the target.", "result", status.writes)
        yield GaugeMetricFamily("dnsproxy_publish_names", "Published names.", value=status.names)
        yield GaugeMetricFamily("dnsproxy_publish_objects", "Objects in the cluster that hold them.", status.objects)
        excluded = GaugeMetricFamily(
            "dnsproxy_publish_left_out_names", "Names that the target cannot hold.", labels=["reason"]
        )
        for reason, count in status.excluded.items():
            excluded.add_metric([reason], count)
        yield excluded
        yield GaugeMetricFamily(
            "dnsproxy_publish_conflicts", "Objects of other writers under a name of ours.", status.conflicts
        )
        yield GaugeMetricFamily(
            "dnsproxy_publish_held_back", "1 while a table waits for a second read.", bool(status.held_back)
        )
        yield GaugeMetricFamily(
            "dnsproxy_publish_synced_timestamp_seconds",
            "When the published names were last known to equal the table, in seconds since the epoch; 0: never.",
            value=status.published_time or 0,
        )


def format_page(status: PublishStatus) -> str:
    """The status page: HTML, with everything from outside escaped."""
    rows = [
        Fact("From", status.source),
        Fact("To", status.target),
        Fact("Names published", f"{status.names:,}"),
        *(Fact(f"Names excluded: {reason}", f"{count:,}", Level.WARN) for reason, count in status.excluded.items()),
        *((Fact("Objects", f"{status.objects:,}"),) if status.objects else ()),
        *((Fact("Conflicting objects", f"{status.conflicts:,}", Level.BAD),) if status.conflicts else ()),
        _problem("Held back", status.held_back, "no"),
        _problem("Error of the source", status.source_trouble, "none"),
        _problem("Error of the target", status.target_trouble, "none"),
    ]
    why = status.why_not_ready()
    state = Fact("State", why or "published", Level.BAD if why else Level.OK)
    frame = Frame("dnsproxy", (("./", "Overview"),), state)
    body = joined((notes(status.notes), section("What is published", facts(rows), key="published")))
    return document(frame, title="Publisher", path="./", body=body)


def _problem(name: str, why: str, none: str) -> Fact:
    return Fact(name, why or none, Level.WARN if why else Level.PLAIN)


def _labelled(name: str, text: str, label: str, values: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
