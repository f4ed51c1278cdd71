"""The status page: mappings and problems.

The law: each value that changes by itself is a Fact with a name, in one list that the page and its script both read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from markupsafe import Markup

from sidecar.admin.page.charts import format_charts
from sidecar.admin.page.document import Fact, Frame, Level, document, facts, notes, section, table, text
from sidecar.admin.page.history import Chart, History, level, mean, rate
from sidecar.admin.page.markup import html, joined
from wholeip.agent.document import describe_opened, show_mapping
from wholeip.agent.status import APPLIED, FAILED, AgentStatus
from wholeip.mappings.mapping import Mapping as PodMapping
from wholeip.mappings.reports import NOTES

SHOWN: Final = 1_000
"""Rows of a table; `wholeip status` shows all."""
_MILLISECONDS: Final = 1_000.0
CHARTS: Final = (
    Chart("mappings", "Mappings", "at a time", (level("mappings", "mappings", "mappings"),)),
    Chart(
        "applied",
        "Transactions",
        "a second",
        (rate("done", "applied", "applied"), rate("failed", "failed", "failed"), rate("undone", "undone", "repaired")),
    ),
    Chart(
        "duration",
        "Duration of a transaction",
        "ms",
        (mean("kernel", "the kernel took", "seconds", "applied", scale=_MILLISECONDS),),
    ),
)


def read_counters(status: AgentStatus) -> Mapping[str, float]:
    """One sample for History.take."""
    return {
        "mappings": status.plan.mapping_count,
        "applied": status.attempts[APPLIED],
        "failed": status.attempts[FAILED],
        "repaired": status.repaired,
        "seconds": status.durations.total,
    }


def agent_facts(status: AgentStatus) -> Iterator[Fact]:
    """All values on the page that change by themselves."""
    yield _state(status)
    yield from _tiles(status)
    yield from _watch_facts(status)


def render_page(status: AgentStatus, history: History) -> str:
    """The page as HTML."""
    body = joined(
        (
            notes(status.advice),
            facts(_tiles(status), kind="tiles"),
            section("The last five minutes", format_charts(history), key="rates"),
            section("Mappings", _mappings(status), key="mappings"),
            section("Reports", _reports(status), key="reports"),
            section("Watches", facts(_watch_facts(status)), key="watches"),
        )
    )
    frame = Frame(
        "wholeip",
        (("./", "Overview"),),
        _state(status),
        (("metrics", "metrics"), ("readyz", "readiness"), ("mappings", "mappings as JSON")),
    )
    return document(frame, title=f"Node {status.node}" if status.node else "Node", path="./", body=body)


def _state(status: AgentStatus) -> Fact:
    if reason := status.why_not_ready():
        return Fact("State", reason, Level.BAD, "state")
    away = [watch for watch in status.watches if watch.error and not watch.absent]
    if away or status.advice:
        return Fact("State", "in step, with a problem", Level.WARN, "state")
    return Fact("State", "the kernel has what the cluster asks for", Level.OK, "state")


def _tiles(status: AgentStatus) -> Iterator[Fact]:
    excluded = len({one.service for one in status.plan.each_report() if one.reason not in NOTES})
    yield Fact("Mappings", f"{status.plan.mapping_count:,}", live="mappings")
    yield Fact("Services", f"{status.services:,}", live="services")
    yield Fact(
        "Services with something excluded",
        f"{excluded:,}",
        Level.WARN if excluded else Level.PLAIN,
        "skipped",
    )
    yield Fact("Changes of other programs undone", f"{status.repaired:,}", _warn(status.repaired), "repaired")
    yield Fact("Transactions that failed", f"{status.attempts[FAILED]:,}", _warn(status.attempts[FAILED]), "failed")
    yield Fact("Flows ended", f"{status.flows_ended:,}", live="flows")


def _watch_facts(status: AgentStatus) -> Iterator[Fact]:
    for watch in status.watches:
        level = Level.WARN if watch.error else Level.OK if watch.synced else Level.PLAIN
        yield Fact(watch.kind, watch.describe(), level, f"watch-{watch.kind.lower()}")


def _warn(count: int) -> Level:
    return Level.WARN if count else Level.PLAIN


def _mappings(status: AgentStatus) -> Markup:
    mappings = status.plan.mappings
    headings = ("Address", "Service", "Pod", "Lets in", "Egress", "Runs")
    shown = table("Addresses and their pods", headings, map(_row, mappings[:SHOWN]), empty="None.")
    return joined((shown, _more(len(mappings))))


def _row(mapping: PodMapping) -> list[Markup]:
    one = show_mapping(mapping)
    cells = (one.address, one.service, one.endpoint, describe_opened(one.opened, icmp=one.icmp))
    return [*map(text, cells), text("yes" if one.egress else "no"), text("here" if one.here else "elsewhere")]


def _reports(status: AgentStatus) -> Markup:
    reports = status.plan.reports
    rows = [
        [text(one.service), text(str(one.reason), Level.PLAIN if one.reason in NOTES else Level.WARN), text(one.detail)]
        for one in reports[:SHOWN]
    ]
    shown = table("Excluded, or worth knowing", ("Service", "Reason", "Detail"), rows, empty="Nothing.")
    return joined((shown, _more(len(reports))))


def _more(count: int) -> Markup:
    return html("<p>{} more; wholeip status lists all.</p>", count - SHOWN) if count > SHOWN else Markup()
