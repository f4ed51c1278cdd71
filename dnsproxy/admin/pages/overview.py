"""The overview at `/`: whether the server does its work, and what a person looks at next.

The law: pure; what changes by itself is a Fact with a name, in one list that the page and its script both read.
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
from sidecar.kubernetes.follower_status import State, Status

LONGEST_SEARCH: Final = 255
_STANZA: Final = (
    "<p>Whether the cluster's DNS sends its queries here is known to <code>dnsproxy status</code> and to the admin "
    "port of <code>dnsproxy install --watch</code>, which is a process of its own. What is seen here:</p>"
)


@dataclass(frozen=True, slots=True)
class UpstreamState:
    """What is known of one upstream."""

    name: str
    unwell: bool
    looping: bool
    misses: int
    """Queries in a row that it left unanswered."""
    stream_only: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """All that the page shows, as of now."""

    state: Fact
    names: int
    waiting: int
    """Names that are forwarded because their target has no address."""
    excluded: int
    unverified: int
    rejected: int
    swapped: float | None
    """Seconds since the table last changed; None before it first did."""
    waiting_for: Sequence[str]
    sources: Sequence[Status]
    now: float
    """On trio's clock, as the sources have it."""
    outstanding: int
    upstreams: Sequence[UpstreamState]
    counters: Counters
    history: History
    notes: Sequence[str] = ()


def overview_facts(overview: Overview) -> Iterator[Fact]:
    """Everything on the page that changes by itself."""
    yield overview.state
    yield from _tiles(overview)
    yield from _stanza_facts(overview)
    yield from _table_facts(overview)
    for number, upstream in enumerate(overview.upstreams):
        yield from _upstream_facts(number, upstream)
    for number, source in enumerate(overview.sources):
        yield from _source_facts(number, source, overview.now)


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
        ("Left out", overview.excluded, "lost", "left-out", Level.WARN),
        ("In doubt", overview.unverified, "doubted", "in-doubt", Level.WARN),
        ("Skipped", overview.rejected, "rejected", "skipped", Level.WARN),
        ("Without an address", overview.waiting, "without-address", "left-out?q=no+address", Level.BAD),
    )
    for name, number, live, to, worst in tiles:
        yield Fact(name, f"{number:,}", worst if number else Level.PLAIN, live, to)


def _stanza_facts(overview: Overview) -> Iterator[Fact]:
    seen = sum(sum(overview.history.line(key)) for key in ("table", "upstream", "own")) * EVERY
    counters = overview.counters
    quiet = seen == 0 and overview.history.number > 0
    recent = "none: does anybody send them here?" if quiet else f"about {format_number(round(seen))}"
    yield Fact("Queries, last five minutes", recent, Level.WARN if quiet else Level.PLAIN, "recent")
    since = f"{counters.requests_udp:,} over UDP, {counters.requests_tcp:,} over TCP"
    yield Fact("Queries since the start", since, live="requests")
    level = Level.BAD if counters.failures else Level.PLAIN
    yield Fact("Queries that met a fault of this program", f"{counters.failures:,}", level, "failures")


def _table_facts(overview: Overview) -> Iterator[Fact]:
    waits = ", ".join(overview.waiting_for)
    yield Fact("Waiting for a first report of", waits or "nobody", Level.BAD if waits else Level.OK, "waiting-for")
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
        "Where other names are forwarded to, in the order in which they are asked",
        ("Server", "By", "Health", "Unanswered in a row"),
        rows,
        empty="None.",
    )


def _upstream_facts(number: int, upstream: UpstreamState) -> tuple[Fact, Fact]:
    health = Fact("", "well", Level.OK)
    if upstream.unwell:
        health = Fact("", "does not answer: asked after the others", Level.BAD)
    if upstream.looping:
        health = Fact("", "leads back here: left out", Level.BAD)
    return (
        Fact("Health", health.text, health.level, f"upstream-{number}"),
        Fact("Unanswered", f"{upstream.misses:,}", live=f"upstream-{number}-misses"),
    )


def _sources(overview: Overview) -> Markup:
    rows = [
        [text(source.kind), *map(value, _source_facts(number, source, overview.now))]
        for number, source in enumerate(overview.sources)
    ]
    return table(
        "What is watched in the cluster",
        ("Kind", "State", "Objects", "Heard from", "Errors"),
        rows,
        empty="None: this server watches no cluster. Its names are from --host and --hosts-file.",
    )


def _source_facts(number: int, source: Status, now: float) -> Iterator[Fact]:
    said = (
        f"{source.describe()}; a list that lost nearly everything is in doubt" if source.doubted else source.describe()
    )
    level = Level.OK if source.state is State.WATCHING else Level.WARN
    if (source.error is not None and not source.absent) or source.doubted:
        level = Level.BAD
    yield Fact("State", said, level, f"source-{number}")
    yield Fact("Objects", f"{source.objects:,}", live=f"source-{number}-objects")
    yield Fact("Heard from", format_age(source.age(now)), live=f"source-{number}-heard")
    errors = ", ".join(f"{count:,} {cause}" for cause, count in source.errors.items())
    yield Fact("Errors", errors or "none", live=f"source-{number}-errors")
