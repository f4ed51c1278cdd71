"""The overview at `/`: whether the server works, and links to what a user checks next.

The law: pure; every value that changes is a Fact with a key, in one list that both the page and its script read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from dnsproxy.answers.counters import Counters
from sidecar.admin.page.charts import format_charts, format_number
from sidecar.admin.page.document import Fact, Level, facts, notes, search_form, section, table, text, value
from sidecar.admin.page.history import EVERY, History
from sidecar.admin.page.markup import html, joined
from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus

LONGEST_SEARCH: Final = 255
_STANZA: Final = (
    "<p>Whether the cluster's DNS forwards queries to this server is shown by <code>dnsproxy status</code> and on the "
    "admin port of <code>dnsproxy install --watch</code>, a separate process. Queries received here:</p>"
)


@dataclass(frozen=True, slots=True)
class UpstreamState:
    """The state of one upstream."""

    name: str
    asked: bool
    failing: bool
    looping: bool
    misses: int
    """Consecutive queries without an answer."""
    stream_only: bool


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """The state of one worker process."""

    number: int
    process: int | None
    since: float
    """Seconds since its start."""
    restarts: int
    """How many workers it has replaced."""
    answering: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything that the page shows, at this moment."""

    state: Fact
    names: int
    waiting: int
    """Names that are forwarded because their target has no address, or no ready endpoint."""
    excluded: int
    elsewhere: int
    """Claimed names that were asked lately and lead elsewhere."""
    rejected: int
    swapped: float | None
    """Seconds since the table last changed; None before the first change."""
    waiting_for: Sequence[str]
    sources: Sequence[FollowerStatus]
    now: float
    """On trio's clock, like the times of the sources."""
    outstanding: int
    upstreams: Sequence[UpstreamState]
    counters: Counters
    history: History
    workers: Sequence[WorkerFacts] = ()
    """Empty: one process does everything."""
    notes: Sequence[str] = ()


def overview_facts(overview: Overview) -> Iterator[Fact]:
    """All values on the page that change."""
    yield overview.state
    yield from _tiles(overview)
    yield from _stanza_facts(overview)
    yield from _table_facts(overview)
    for number, upstream in enumerate(overview.upstreams):
        yield from _upstream_facts(number, upstream)
    for number, source in enumerate(overview.sources):
        yield from _source_facts(number, source, overview.now)
    for worker in overview.workers:
        yield from _worker_facts(worker)


def format_overview(overview: Overview) -> Markup:
    """The content of the page."""
    return joined(
        (
            notes(overview.notes),
            facts(_tiles(overview), kind="tiles"),
            search_form(
                "names",
                label="Find a name or the object it is from",
                field="q",
                asked="",
                longest=LONGEST_SEARCH,
                button="Find",
            ),
            section("The last five minutes", format_charts(overview.history), key="rates"),
            section("Upstreams", _upstreams(overview.upstreams), key="upstreams"),
            section("Sources", _sources(overview), key="sources"),
            *([section("Workers", _workers(overview.workers), key="workers")] if overview.workers else ()),
            section("Table", facts(_table_facts(overview)), key="table"),
            section("The stanza", joined((html(_STANZA), facts(_stanza_facts(overview)))), key="stanza"),
        )
    )


def format_age(seconds: float | None) -> str:
    """`3 s ago`, `5 min ago`, `2 h ago`, `4 d ago`."""
    if seconds is None:
        return "never"
    for unit, size, until in (("s", 1, 120), ("min", 60, 7_200), ("h", 3_600, 172_800)):
        if seconds < until:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds / 86_400:.0f} d ago"


def _tiles(overview: Overview) -> Iterator[Fact]:
    tiles = (
        ("Names", overview.names, "names", "names", Level.PLAIN),
        ("Excluded", overview.excluded, "lost", "left-out", Level.WARN),
        ("Lead elsewhere", overview.elsewhere, "led-elsewhere", "elsewhere", Level.WARN),
        ("Rejected", overview.rejected, "rejected", "skipped", Level.WARN),
        ("Without an address", overview.waiting, "without-address", "left-out?q=no+address", Level.BAD),
    )
    for name, number, live, to, worst in tiles:
        yield Fact(name, f"{number:,}", worst if number else Level.PLAIN, live, to)


def _stanza_facts(overview: Overview) -> Iterator[Fact]:
    seen = sum(sum(overview.history.line(key)) for key in ("table", "upstream", "own")) * EVERY
    counters = overview.counters
    quiet = seen == 0 and overview.history.number > 0
    recent = "none: does the cluster's DNS forward queries here?" if quiet else f"about {format_number(round(seen))}"
    yield Fact("Queries, last five minutes", recent, Level.WARN if quiet else Level.PLAIN, "recent")
    since = f"{counters.requests_udp:,} over UDP, {counters.requests_tcp:,} over TCP"
    yield Fact("Queries since the start", since, live="requests")
    level = Level.BAD if counters.failures else Level.PLAIN
    yield Fact("Queries that hit an internal error", f"{counters.failures:,}", level, "failures")


def _table_facts(overview: Overview) -> Iterator[Fact]:
    waits = ", ".join(overview.waiting_for)
    synced = f"waiting for {waits}" if waits else "all"
    yield Fact("Sources synced", synced, Level.BAD if waits else Level.OK, "waiting-for")
    yield Fact("Last change", format_age(overview.swapped), live="swapped")


def _upstreams(upstreams: Sequence[UpstreamState]) -> Markup:
    rows = [
        [
            text(upstream.name),
            text("TCP" if upstream.stream_only else "UDP, TCP"),
            *map(value, _upstream_facts(number, upstream)),
        ]
        for number, upstream in enumerate(upstreams)
    ]
    return table(
        "Servers for all other names, in the order in which they are asked",
        ("Server", "Protocols", "Health", "Unanswered in a row"),
        rows,
        empty="None.",
    )


def _upstream_facts(number: int, upstream: UpstreamState) -> tuple[Fact, Fact]:
    health = Fact("", "healthy", Level.OK) if upstream.asked else Fact("", "not asked yet")
    if upstream.failing:
        health = Fact("", "failing: asked after the others", Level.BAD)
    if upstream.looping:
        health = Fact("", "loops back to this server: excluded", Level.BAD)
    return (
        Fact("Health", health.text, health.level, f"upstream-{number}"),
        Fact("Unanswered", f"{upstream.misses:,}", live=f"upstream-{number}-misses"),
    )


def _workers(workers: Sequence[WorkerFacts]) -> Markup:
    return table(
        "Processes that answer; the table and all numbers here are of all together",
        ("Worker", "State", "Process", "Started", "Replaced"),
        [[text(str(one.number)), *map(value, _worker_facts(one))] for one in workers],
        empty="None.",
    )


def _worker_facts(worker: WorkerFacts) -> Iterator[Fact]:
    key = f"worker-{worker.number}"
    state = ("answers", Level.OK) if worker.answering else ("gives no sign of life", Level.BAD)
    yield Fact("State", *state, key)
    yield Fact("Process", "unknown" if worker.process is None else str(worker.process), live=f"{key}-process")
    yield Fact("Started", format_age(worker.since), live=f"{key}-since")
    level = Level.WARN if worker.restarts else Level.PLAIN
    yield Fact("Replaced", f"{worker.restarts:,}", level, f"{key}-restarts")


def _sources(overview: Overview) -> Markup:
    rows = [
        [text(source.kind), *map(value, _source_facts(number, source, overview.now))]
        for number, source in enumerate(overview.sources)
    ]
    return table(
        "Watches in the cluster",
        ("Kind", "State", "Objects", "Last contact", "Errors"),
        rows,
        empty="None: this server watches no cluster. Its names are from --host and --hosts-file.",
    )


def _source_facts(number: int, source: FollowerStatus, now: float) -> Iterator[Fact]:
    unconfirmed = "; a list that lost nearly all objects is unconfirmed" if source.doubted else ""
    level = Level.OK if source.state is FollowerState.WATCHING else Level.WARN
    if (source.error is not None and not source.absent) or source.doubted:
        level = Level.BAD
    yield Fact("State", f"{source.describe()}{unconfirmed}", level, f"source-{number}")
    yield Fact("Objects", f"{source.objects:,}", live=f"source-{number}-objects")
    yield Fact("Last contact", format_age(source.age(now)), live=f"source-{number}-heard")
    errors = ", ".join(f"{count:,} {cause}" for cause, count in source.errors.items())
    yield Fact("Errors", errors or "none", live=f"source-{number}-errors")
