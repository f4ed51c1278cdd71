"""Status: what a publisher tells of itself, for readiness, metrics and the status page.

The law: written by one publisher, read by anyone at any time; plain numbers that cost nothing to keep. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sidecar.page.document import Fact, Frame, Level, document, facts, notes, section
from sidecar.page.markup import joined

CHANGED: Final = "changed"
UNCHANGED: Final = "unchanged"
FAILED: Final = "failed"


def _results(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, 0)


@dataclass(slots=True)
class PublishStatus:
    """Counts since the start, and how things stand."""

    source: str
    """Where the table comes from, for people."""
    target: str
    """Where it is published."""
    looks: dict[str, int] = field(default_factory=lambda: _results(CHANGED, UNCHANGED, FAILED))
    """Looks at the table, by what came of them."""
    writes: dict[str, int] = field(default_factory=lambda: _results("done", FAILED))
    names: int = 0
    """Published now."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Names that cannot be published there, by the reason."""
    objects: int = 0
    """In the cluster that hold them; 0 where there are none by nature."""
    conflicts: int = 0
    """Objects of others that stand where ours should."""
    published_time: float | None = None
    """When what is published was last known to be what the table says, in seconds since the epoch."""
    held_back: str = ""
    """Why the last table was not published yet; empty where it was."""
    source_trouble: str = ""
    """Why the table could not be read at the last look; empty where it could."""
    target_trouble: str = ""
    """Why it could not be published at the last try; empty where it could."""
    notes: tuple[str, ...] = ()
    """What one should know of the published objects."""

    def why_not_ready(self) -> str:
        """Why the program cannot do its work; empty where it can.

        A table that cannot be read for a while takes nothing away from what is published.
        """
        if self.target_trouble:
            return self.target_trouble
        if self.published_time is None:
            return self.held_back or self.source_trouble or "nothing is published yet"
        return ""


class PublishCollector(Collector):
    """Registers with a CollectorRegistry and reads the status at each scrape. No name is ever a label."""

    def __init__(self, status: PublishStatus) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """No names in advance: the registry would have to collect for them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metric families of now."""
        status = self._status
        yield _labelled("dnsproxy_publish_looks", "Looks at the table.", "result", status.looks)
        yield _labelled("dnsproxy_publish_writes", "Writes of what is published.", "result", status.writes)
        yield GaugeMetricFamily("dnsproxy_publish_names", "Names that are published.", value=status.names)
        yield GaugeMetricFamily("dnsproxy_publish_objects", "Objects in the cluster that hold them.", status.objects)
        left_out = GaugeMetricFamily(
            "dnsproxy_publish_left_out_names", "Names that cannot be published there.", labels=["reason"]
        )
        for reason, count in status.left_out.items():
            left_out.add_metric([reason], count)
        yield left_out
        yield GaugeMetricFamily(
            "dnsproxy_publish_conflicts", "Objects of others that stand where ours should.", status.conflicts
        )
        yield GaugeMetricFamily(
            "dnsproxy_publish_held_back", "1: a table waits for a second look.", bool(status.held_back)
        )
        yield GaugeMetricFamily(
            "dnsproxy_publish_synced_timestamp_seconds",
            "When what is published was last known to be what the table says, in seconds since the epoch; 0: never.",
            value=status.published_time or 0,
        )


def format_page(status: PublishStatus) -> str:
    """The status page: HTML, with everything from outside escaped."""
    rows = [
        Fact("From", status.source),
        Fact("To", status.target),
        Fact("Names published", f"{status.names:,}"),
        *(Fact(f"Names left out: {reason}", f"{count:,}", Level.WARN) for reason, count in status.left_out.items()),
        *((Fact("Objects", f"{status.objects:,}"),) if status.objects else ()),
        *((Fact("Objects of others in the way", f"{status.conflicts:,}", Level.BAD),) if status.conflicts else ()),
        _trouble("Held back", status.held_back, "no"),
        _trouble("Trouble with the table", status.source_trouble, "none"),
        _trouble("Trouble with the target", status.target_trouble, "none"),
    ]
    why = status.why_not_ready()
    state = Fact("State", why or "published", Level.BAD if why else Level.OK)
    frame = Frame("dnsproxy", (("./", "Overview"),), state)
    body = joined((notes(status.notes), section("What is published", facts(rows), key="published")))
    return document(frame, title="Publisher", path="./", body=body)


def _trouble(name: str, why: str, none: str) -> Fact:
    return Fact(name, why or none, Level.WARN if why else Level.PLAIN)


def _labelled(name: str, text: str, label: str, values: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
