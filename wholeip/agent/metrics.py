"""The metrics of an agent, read at each scrape.

The law: names and labels are chosen here, and no label holds a hostname, an object's name or an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sidecar.kubernetes.errors import NotFound
from wholeip.agent.status import DURATION_BOUNDS, AgentStatus
from wholeip.mappings.reports import NOTES, Reason, skipped


class AgentCollector(Collector):
    """Registers with a CollectorRegistry and reads the status at each scrape."""

    def __init__(self, status: AgentStatus) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """No names in advance: the registry would have to collect for them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The present metric families."""
        status = self._status
        yield GaugeMetricFamily("wholeip_services", "Services with our label.", value=status.services)
        yield GaugeMetricFamily(
            "wholeip_mappings", "Addresses of load balancers that are mapped to a pod.", value=status.plan.mapping_count
        )
        yield self._skipped()
        yield GaugeMetricFamily(
            "wholeip_in_step", "1 while the kernel has what the cluster asks for.", value=not status.why_not_ready()
        )
        attempts = CounterMetricFamily("wholeip_apply", "Transactions with the kernel, by result.", labels=["result"])
        for result, count in status.attempts.items():
            attempts.add_metric([result], count)
        yield attempts
        yield self._durations()
        yield CounterMetricFamily(
            "wholeip_drift_repaired", "Changes of other programs that were undone.", value=status.repaired
        )
        yield CounterMetricFamily(
            "wholeip_flows_ended",
            "Flows ended that no rule allowed or that were older than a mapping.",
            value=status.flows_ended,
        )
        yield CounterMetricFamily(
            "wholeip_flows_errors", "Failed attempts to end such flows.", value=status.flow_failures
        )
        yield GaugeMetricFamily(
            "wholeip_applied_timestamp_seconds", "When the kernel last applied rules.", value=status.applied_time or 0
        )
        yield from self._watches()

    def _skipped(self) -> Metric:
        family = GaugeMetricFamily(
            "wholeip_services_skipped", "Services with something excluded, by reason.", labels=["reason"]
        )
        counts = skipped(self._status.plan.each_report())
        for reason in Reason:
            if reason not in NOTES:
                family.add_metric([str(reason)], counts[str(reason)])
        return family

    def _durations(self) -> Metric:
        durations = self._status.durations
        family = HistogramMetricFamily("wholeip_apply_duration_seconds", "Duration of a transaction in the kernel.")
        bounds = [*map(str, DURATION_BOUNDS), "+Inf"]
        family.add_metric([], list(zip(bounds, accumulate(durations.counts), strict=True)), durations.total)
        return family

    def _watches(self) -> Iterator[Metric]:
        contact = GaugeMetricFamily(
            "wholeip_watch_contact_timestamp_seconds", "Last contact with the API server.", labels=["kind"]
        )
        errors = CounterMetricFamily("wholeip_watch_errors", "Failures of a watch, by cause.", labels=["kind", "cause"])
        for watch in self._status.watches:
            if not isinstance(watch.error, NotFound):  # a kind that this server does not have is never heard of
                contact.add_metric([watch.kind], watch.contact_time or 0)
            for cause, count in watch.errors.items():
                errors.add_metric([watch.kind, cause], count)
        yield contact
        yield errors
