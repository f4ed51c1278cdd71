"""The steering status: the document of now, and the counters, for readiness, metrics and the page.

The law: one task writes it, any code reads it at any time; no name of the cluster is ever a label. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dnsproxy.admin.steering_document import SteeringDocument
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.decisions import Verdict


@dataclass(slots=True)
class SteeringStatus:
    """What is known of the steering, and what was done."""

    document: SteeringDocument = field(default_factory=lambda: SteeringDocument(leads=False))
    lists: str = "the lists of the API server are not read yet"
    """Why there are no decisions yet; empty once every list was read."""
    lease_fault: str = ""
    probes: Counter[HeaderMode] = field(default_factory=Counter)
    """Probes so far, by what they showed."""
    handshakes: Counter[bool] = field(default_factory=Counter)
    """Handshakes so far, by success."""
    writes: int = 0
    write_errors: Counter[str] = field(default_factory=Counter)
    """Failed writes by ApiError.cause."""

    def why_not_ready(self) -> str:
        """Empty once every list was read; what comes later never makes it unready, because the last decisions stay."""
        return self.lists


class SteeringCollector(Collector):
    """Registers with a CollectorRegistry and reads the status at each scrape."""

    def __init__(self, status: SteeringStatus) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """No names in advance: the registry would have to collect for them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metric families of now."""
        status, document = self._status, self._status.document
        yield _gauge("leads", "1: this replica probes and writes.", float(document.leads))
        yield _gauge("missing", "What was not read, or is not certain.", len(document.missing))
        verdicts = Counter(one.decision for one in document.subjects)
        yield _labelled(
            "subjects",
            "Ingress classes and Gateways by decision.",
            "decision",
            {one.value: verdicts[one.value] for one in Verdict},
        )
        yield _gauge(
            "steered",
            "Ingress classes and Gateways whose names are answered with a relay.",
            sum(one.steered for one in document.subjects),
        )
        yield _gauge(
            "undecided",
            "Ingress classes and Gateways that something is missing to decide about; 0 if this replica does not lead.",
            # Only the replica that leads probes, so the others miss that.
            sum(one.undecided for one in document.subjects) if document.leads else 0,
        )
        yield _gauge(
            "faults",
            "Decisions that something is in the way of, and route Services with a fault.",
            sum(bool(one.fault) for one in document.subjects) + sum(bool(one.faults) for one in document.routes),
        )
        yield CounterMetricFamily("dnsproxy_operate_writes", "Route Services written.", value=status.writes)
        errors = CounterMetricFamily("dnsproxy_operate_write_errors", "Writes that failed, by cause.", labels=["cause"])
        for cause, count in sorted(status.write_errors.items()):
            errors.add_metric([cause], count)
        yield errors
        probes = CounterMetricFamily(
            "dnsproxy_operate_probes", "Probes of controllers, by what they showed.", labels=["mode"]
        )
        for mode in HeaderMode:
            probes.add_metric([mode.name.lower()], status.probes[mode])
        yield probes
        handshakes = CounterMetricFamily(
            "dnsproxy_operate_handshakes", "Handshakes through relays, by result.", labels=["result"]
        )
        for succeeded in (True, False):
            handshakes.add_metric(["succeeded" if succeeded else "failed"], status.handshakes[succeeded])
        yield handshakes


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"dnsproxy_operate_{name}", text, value=value)


def _labelled(name: str, text: str, label: str, values: dict[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"dnsproxy_operate_{name}", text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
