"""The status of a watcher, for readiness, metrics and the status page.

The law: one watcher writes the status; reading it is possible at any time. No name is ever a label. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dnsproxy.corefile.model import listed
from dnsproxy.install.change.coverage import Coverage
from dnsproxy.install.change.rewrite_choice import ADVICE
from dnsproxy.install.watch.state_machine import Standing, WatchState
from sidecar.admin.page.document import Fact, Frame, Level, document, facts, section


@dataclass(slots=True)
class WatchStatus:
    """The state of one watcher, and what is known in addition."""

    asks: bool = True
    """Whether the cluster's DNS is asked at all."""
    state: WatchState = field(default_factory=WatchState)
    target: str = ""
    """The place of the stanza."""
    zones: str = ""
    """The zones of the stanza, and where they come from."""
    names: str = ""
    """For rewrite lines: how many names are rewritten; empty for a stanza."""
    left_out: int = 0
    """For rewrite lines: names that are left out because there are too many."""
    coverage: Coverage = field(default_factory=Coverage)
    """The hostnames of the running dnsproxy outside the zones, if a user named both."""
    loaded: bool | None = None
    """Whether the cluster's DNS asks dnsproxy; None while that is not known."""
    said: str = ""
    """The last answers of the cluster's DNS."""
    look_time: float | None = None
    """The time of the last look, in seconds since the epoch."""
    stood: bool = False
    """Whether the stanza was ever seen in place."""

    def why_not_ready(self) -> str:
        """Empty once the cluster's DNS has loaded the stanza; an unreachable API server does not change that."""
        standing = self.state.standing
        if standing in (Standing.REFUSED, Standing.UNDONE):
            return self.describe()
        if not self.stood:
            return self.describe()
        if not self.asks or self.loaded:
            return ""
        return f"written, but not loaded yet: {self.said or 'the cluster DNS was not asked yet'}"

    def describe(self) -> str:
        """`installed`, or `refused: ...`."""
        standing, why = self.state.standing, self.state.why
        if standing is Standing.UNDONE:
            why = f"{self.state.undone} times so far; the wait before the next write is {self.state.held:g} s"
        return f"{standing.value}: {why}" if why else standing.value


class WatchCollector(Collector):
    """Registers with a CollectorRegistry and reads the status at each scrape."""

    def __init__(self, status: WatchStatus) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """No names in advance: the registry would have to collect for them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metric families of now."""
        status, state = self._status, self._status.state
        yield CounterMetricFamily(
            "dnsproxy_install_repairs", "Writes of the stanza after the first.", value=state.repairs
        )
        yield CounterMetricFamily(
            "dnsproxy_install_undone", "How often a look found the stanza undone.", value=state.undone
        )
        family = GaugeMetricFamily("dnsproxy_install_state", "1 for the present state of the stanza.", labels=["state"])
        for standing in Standing:
            family.add_metric([standing.value], float(standing is state.standing))
        yield family
        yield GaugeMetricFamily(
            "dnsproxy_install_loaded",
            "1: the cluster's DNS asks dnsproxy; 0: it does not, or this is unknown.",
            value=float(bool(status.loaded)),
        )
        yield GaugeMetricFamily(
            "dnsproxy_install_names_left_out",
            "Names that get no rewrite line because there are too many; 0 for a stanza.",
            value=status.left_out,
        )
        yield GaugeMetricFamily(
            "dnsproxy_install_look_timestamp_seconds",
            "The time of the last look at the cluster, in seconds since the epoch; 0: never.",
            value=status.look_time or 0,
        )


def stanza_facts(status: WatchStatus) -> list[Fact]:
    """What a page shows of the stanza."""
    loaded = {True: "yes", False: "no", None: "unknown"}[status.loaded]
    return [
        Fact("State", status.describe()),
        Fact("Where", status.target or "unknown"),
        _covered(status),
        *_outside(status.coverage),
        Fact("Loaded", loaded if status.asks else "not asked", Level.OK if status.loaded else Level.PLAIN),
        Fact("Answers of the cluster's DNS", status.said or "none yet"),
        Fact("Repairs", f"{status.state.repairs:,}"),
        Fact("Undone by others", f"{status.state.undone:,}", Level.WARN if status.state.undone else Level.PLAIN),
    ]


def format_page(status: WatchStatus) -> str:
    """The status page: HTML, with everything from outside escaped."""
    why = status.why_not_ready()
    state = Fact("State", why or status.describe(), Level.BAD if why else Level.OK)
    frame = Frame("dnsproxy install --watch", (("./", "Overview"),), state)
    return document(
        frame, title="The stanza", path="./", body=section("State", facts(stanza_facts(status)), key="stanza")
    )


def _covered(status: WatchStatus) -> Fact:
    if not status.names:
        return Fact("Zones", status.zones or "unknown")
    text = f"{status.names}; {ADVICE}" if status.left_out else status.names
    return Fact("Names", text, Level.WARN if status.left_out else Level.PLAIN)


def _outside(coverage: Coverage) -> list[Fact]:
    if coverage.hosts:
        text = f"{listed(coverage.hosts)}; add --zone {' --zone '.join(coverage.zones)}"
        return [Fact("Hostnames outside the zones", text, Level.WARN)]
    return [Fact("Hostnames outside the zones", f"unknown: {coverage.unknown}")] if coverage.unknown else []
