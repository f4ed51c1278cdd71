"""The reports of a primary and of a replica: metrics, and notes for pages.

The law: it reads and changes nothing; no zone's and no client's name is a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sidecar.kubernetes.follower_status import FollowerStatus

if TYPE_CHECKING:
    from dnsproxy.primary.primary import Primary
    from dnsproxy.replica.replica import Replica
    from dnsproxy.zone.policy import Inexpressible


class ZoneReport:
    """The numbers of what there is of both."""

    def __init__(self, primary: Primary | None = None, replica: Replica | None = None) -> None:
        self._primary = primary
        self._replica = replica

    def metrics(self) -> Iterator[Metric]:
        """The metric families; none for a server that is neither."""
        if self._primary is not None:
            yield from _primary_metrics(self._primary)
        if self._replica is not None:
            yield from _replica_metrics(self._replica)

    def sources(self) -> list[FollowerStatus]:
        """The primary that the table comes from, beside the other sources."""
        return [self._replica.source] if self._replica is not None else []

    def notes(self) -> list[str]:
        """What users should know."""
        found = []
        if self._replica is not None and self._replica.status.fault:
            found.append(f"{self._replica.status.fault}; the last table stays")
        left_out = self._primary.published.zones.inexpressible if self._primary is not None else None
        if left_out is not None and left_out.one_label:
            found.append(f"--rpz: {left_out.one_label} wildcards of one label, which RPZ cannot say (--rpz-wildcards)")
        if left_out is not None and left_out.too_long:
            found.append(f"--rpz: {left_out.too_long} names are too long for the zone, and left out")
        if left_out is not None and left_out.triggers:
            found.append(f"--rpz: {left_out.triggers} names end as rules of RPZ do (rpz-ip ...), and are left out")
        return found + (_unreplaced_notes(left_out) if left_out is not None else [])


def _unreplaced_notes(left_out: Inexpressible) -> list[str]:
    """What leads here, and is not replaced by resolvers with the zone."""
    found = []
    if left_out.balancer_hostnames:
        found.append(
            f"--rpz: {left_out.balancer_hostnames} load balancers have a hostname; resolvers replace only the "
            "addresses that were found for it"
        )
    if left_out.balancer_addresses:
        found.append(
            f"--rpz: {left_out.balancer_addresses} addresses or networks lead here for the table's names alone, which "
            "RPZ cannot say (--replace ADDRESS=TARGET, or --rpz-triggers names)"
        )
    if left_out.passed:
        found.append(f"--rpz: {left_out.passed} names below a wildcard are not replaced, because RPZ lets them pass")
    return found


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: int) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)


def _primary_metrics(primary: Primary) -> Iterator[Metric]:
    zones = primary.published.zones
    yield _gauge("dnsproxy_rpz_serial", "Serial of the zone; 0 before the first version.", zones.serial)
    yield _gauge("dnsproxy_rpz_policy_bytes", "Octets of the policy zone.", zones.policy.octets)
    transfers = CounterMetricFamily("dnsproxy_rpz_transfers", "Transfers that ended, by kind.", labels=["kind"])
    for kind, count in primary.server.transfers.items():
        transfers.add_metric([kind], count)
    yield transfers
    yield _counter("dnsproxy_rpz_refused", "Requests for a zone that were refused.", primary.server.refused)
    behind = sum(primary.behind.values())
    yield _gauge("dnsproxy_rpz_secondaries_behind", "Secondaries not known to have the current version.", behind)
    left_out = zones.inexpressible
    text = "Names and load balancers that RPZ cannot say."
    family = GaugeMetricFamily("dnsproxy_rpz_left_out_names", text, labels=["reason"])
    family.add_metric(["wildcard_of_one_label"], left_out.one_label)
    family.add_metric(["too_long"], left_out.too_long)
    family.add_metric(["trigger"], left_out.triggers)
    family.add_metric(["below_wildcard"], left_out.passed)
    family.add_metric(["balancer_hostname"], left_out.balancer_hostnames)
    family.add_metric(["balancer_address"], left_out.balancer_addresses)
    yield family


def _replica_metrics(replica: Replica) -> Iterator[Metric]:
    status = replica.status
    yield _gauge("dnsproxy_replica_serial", "Serial of the table; 0 before the first.", status.serial or 0)
    yield _counter("dnsproxy_replica_transfers", "Transfers that brought a version.", status.transfers)
