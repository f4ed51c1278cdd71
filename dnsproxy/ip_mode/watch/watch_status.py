"""The status of a watch, for readiness, metrics and the status page.

The law: each Service's watcher writes its own part; reading it is possible at any time. No name is ever a label. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.watch.observed import NO_MODE
from dnsproxy.ip_mode.watch.plan import Standing, WatchState
from sidecar.admin.page.document import Fact, Frame, Level, document, facts, section
from sidecar.admin.page.markup import joined
from sidecar.kubernetes.errors import Forbidden
from sidecar.kubernetes.follower_status import FollowerStatus

_BAD = frozenset([Standing.UNDONE, Standing.REFUSED, Standing.NOT_KEPT, Standing.FAILED])
_MODES = (PROXY, "VIP", NO_MODE)


@dataclass(slots=True)
class ServiceStatus:
    """The state of one Service's watcher, and what is known in addition."""

    ref: ObjectRef
    state: WatchState = field(default_factory=WatchState)
    follower: FollowerStatus = field(default_factory=FollowerStatus)
    errors: Counter[str] = field(default_factory=Counter)
    """Writes that failed, by ApiError.cause."""
    error_time: float = 0.0
    """The time of the last of them, in seconds since the epoch; 0: never."""

    def why_not_ready(self) -> str:
        """Empty if ipMode is in place or there is nothing to write; an API server that goes away changes nothing."""
        if not self.follower.synced:
            return f"{self.ref}: {describe_follower(self.ref, self.follower)}"
        return f"{self.ref}: {self.describe()}" if self.state.standing in _BAD else ""

    def describe(self) -> str:
        """`in-place`, or `undone: ...`."""
        return f"{self.state.standing.value}: {self.state.why}" if self.state.why else self.state.standing.value


def describe_follower(ref: ObjectRef, follower: FollowerStatus) -> str:
    """Why the Service is not known, with the right that is missing."""
    if isinstance(follower.error, Forbidden):
        return f"list and watch on services, resourceNames {ref.name}, in {ref.namespace} are missing: {follower.error}"
    return f"{'the last state counts' if follower.synced else 'not read yet'}: {follower.describe()}"


def why_not_ready(statuses: Sequence[ServiceStatus]) -> str:
    """Of all Services, one sentence each; empty if all are ready."""
    return "; ".join(filter(None, (one.why_not_ready() for one in statuses)))


class IpModeCollector(Collector):
    """Registers with a CollectorRegistry and reads the statuses at each scrape."""

    def __init__(self, statuses: Sequence[ServiceStatus]) -> None:
        self._statuses = statuses

    def describe(self) -> list[Metric]:
        """No names in advance: the registry would have to collect for them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metric families of now."""
        states = [one.state for one in self._statuses]
        yield CounterMetricFamily(
            "dnsproxy_ip_mode_writes", "Statuses in which ipMode was set.", value=sum(one.writes for one in states)
        )
        yield CounterMetricFamily(
            "dnsproxy_ip_mode_undone",
            "How often another writer set ipMode back.",
            value=sum(one.undone for one in states),
        )
        errors = CounterMetricFamily("dnsproxy_ip_mode_errors", "Writes that failed, by cause.", labels=["cause"])
        for cause, number in sum((one.errors for one in self._statuses), Counter[str]()).items():
            errors.add_metric([cause], number)
        yield errors
        yield GaugeMetricFamily(
            "dnsproxy_ip_mode_error_timestamp_seconds",
            "The time of the last write that failed, in seconds since the epoch; 0: never.",
            value=max((one.error_time for one in self._statuses), default=0.0),
        )
        modes = sum((one.seen.modes for one in states if one.seen), Counter[str]())
        yield _gauge(
            "entries", "Addresses of the named Services, by ipMode.", "mode", {one: modes[one] for one in _MODES}
        )
        standings = Counter(one.standing for one in states)
        yield _gauge("services", "Services by state.", "state", {one.value: standings[one] for one in Standing})


def _gauge(name: str, text: str, label: str, values: dict[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"dnsproxy_ip_mode_{name}", text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def format_page(statuses: Sequence[ServiceStatus]) -> str:
    """The status page: HTML, with everything from outside escaped."""
    why = why_not_ready(statuses)
    state = Fact("State", why or "ready", Level.BAD if why else Level.OK)
    frame = Frame("dnsproxy ip-mode --watch", (("./", "Overview"),), state)
    body = joined(
        section(str(one.ref), facts(_rows(one)), key=f"service-{number}") for number, one in enumerate(statuses)
    )
    return document(frame, title="ipMode", path="./", body=body)


def _rows(status: ServiceStatus) -> list[Fact]:
    state, seen = status.state, status.state.seen
    bad = status.why_not_ready()
    modes = seen.modes if seen else Counter[str]()
    return [
        Fact("State", status.describe(), Level.BAD if bad else Level.OK),
        Fact("API server", describe_follower(status.ref, status.follower) if status.follower.error else "watching"),
        Fact("Entries", ", ".join(f"{number:,} {mode}" for mode, number in sorted(modes.items())) or "none"),
        Fact("Written last by", (seen.writer if seen else "") or "unknown"),
        Fact("Writes", f"{state.writes:,}"),
        Fact("Undone by others", f"{state.undone:,}", Level.WARN if state.undone else Level.PLAIN),
        Fact("Failed writes", f"{status.errors.total():,}", Level.WARN if status.errors else Level.PLAIN),
    ]
