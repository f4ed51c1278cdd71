"""The metrics of a server: its plain counters, turned into metric families at each scrape.

The law: names follow CoreDNS and Prometheus; no hostname and no client address is ever a label, because both come from
outside and are unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import trio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from dnsproxy.answers.counters import BUCKETS, Counters, Durations
from dnsproxy.answers.table import HostTable
from dnsproxy.dns.wire import Rcode
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.replace.verdicts import LeadsTo, Led
from dnsproxy.serve.worker_metrics import WorkerNumbers, worker_metrics
from sidecar.kubernetes.follower_status import FollowerStatus


class AnsweringServer(Protocol):
    """The server that answers, in one process or in several."""

    @property
    def table(self) -> HostTable:
        """The table that it answers from."""

    @property
    def counters(self) -> Counters:
        """Its counts since the start."""

    @property
    def outstanding(self) -> int:
        """How many queries wait for an upstream."""

    def upstream_reports(self) -> list[UpstreamReport]:
        """The state of each upstream."""

    def led_counts(self) -> Mapping[LeadsTo, int]:
        """How many claimed names and types lead where."""

    def led(self) -> tuple[object, Sequence[Led]]:
        """See LedServer."""

    def asked_names(self) -> int:
        """See LedServer."""


class ServerCollector(Collector):
    """Reads the numbers of one server at each scrape."""

    def __init__(
        self,
        server: AnsweringServer,
        keeper: TableKeeper,
        statuses: Callable[[], Iterable[FollowerStatus]] = tuple,
        *,
        upstream_notes: Callable[[], Sequence[str]] = tuple,
        more: Callable[[], Iterable[Metric]] = tuple,
        workers: WorkerNumbers | None = None,
    ) -> None:
        self._server = server
        self._keeper = keeper
        self._statuses = statuses
        self._upstream_notes = upstream_notes
        self._more = more
        self._workers = workers

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        counters = self._server.counters
        yield _labelled(
            "dnsproxy_dns_requests",
            "Queries received.",
            "proto",
            {"udp": counters.requests_udp, "tcp": counters.requests_tcp},
        )
        yield from worker_metrics(self._workers)
        yield _responses(counters)
        yield _durations(counters)
        yield from _forwarding(counters, self._server.outstanding)
        yield _upstreams(self._server)
        yield GaugeMetricFamily(
            "dnsproxy_forward_upstreams_not_followed",
            "Reasons why other names do not go where --upstream-configmap says; the status page has them.",
            value=len(self._upstream_notes()),
        )
        yield _counter("dnsproxy_dns_dropped", "Messages without a reply, responses among them.", counters.dropped)
        yield _counter(
            "dnsproxy_dns_failures", "Queries and connections that hit an internal error.", counters.failures
        )
        yield _counter("dnsproxy_tcp_connections", "TCP connections accepted.", counters.tcp_connections)
        yield _counter("dnsproxy_tcp_refused", "TCP connections beyond a limit.", counters.tcp_refused)
        yield _counter("dnsproxy_tcp_evicted", "Idle TCP connections closed for new ones.", counters.tcp_evicted)
        tasks = trio.lowlevel.current_statistics().tasks_living
        yield GaugeMetricFamily("dnsproxy_tasks", "Tasks of the event loop; a steady increase is a leak.", value=tasks)
        yield GaugeMetricFamily("dnsproxy_table_names", "Names in the table.", value=self._keeper.names)
        yield GaugeMetricFamily(
            "dnsproxy_table_names_without_address",
            "Claimed names that are forwarded because their target has no address, or no ready endpoint.",
            value=self._keeper.registry.outcomes.waiting,
        )
        yield GaugeMetricFamily(
            "dnsproxy_target_services_unready",
            "Services that names point to and that have no ready endpoint; their names are forwarded.",
            value=len(self._keeper.registry.targets.unready),
        )
        yield GaugeMetricFamily(
            "dnsproxy_table_names_contested",
            "Names that a claim of another namespace waits for (--hold).",
            value=self._keeper.registry.holds.contested,
        )
        _, left_out = self._keeper.registry.shares.left_out()
        yield GaugeMetricFamily(
            "dnsproxy_names_left_out",
            "Names of objects that are left out, because their namespaces claim more than their share.",
            value=left_out,
        )
        yield _claimed_names(self._server)
        yield from _freshness(self._keeper, self._statuses())
        yield from self._more()


def _claimed_names(server: AnsweringServer) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "dnsproxy_claimed_names_asked",
        "Claimed names asked lately, a name and type each, by where their records lead; nowhere: there is none.",
        labels=["leads"],
    )
    for place, count in server.led_counts().items():
        family.add_metric([place.value], count)
    return family


def _counter(name: str, text: str, value: int) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)


def _labelled(name: str, text: str, label: str, values: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _responses(counters: Counters) -> CounterMetricFamily:
    family = CounterMetricFamily("dnsproxy_dns_responses", "Replies sent.", labels=["rcode", "source"])
    sources = {"table": counters.table_by_rcode, "upstream": counters.upstream_by_rcode, "own": counters.own_by_rcode}
    for source, by_rcode in sources.items():
        for rcode, count in enumerate(by_rcode):
            if count:
                family.add_metric([_rcode_name(rcode), source], count)
    return family


def _rcode_name(rcode: int) -> str:
    try:
        return Rcode(rcode).name
    except ValueError:
        return f"RCODE{rcode}"


def _durations(counters: Counters) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "dnsproxy_dns_request_duration_seconds",
        "From a query's arrival to its reply; an answer from the table counts the time of its whole batch.",
        labels=["source"],
    )
    for source, durations in (("table", counters.table_seconds), ("upstream", counters.forward_seconds)):
        family.add_metric([source], buckets=_buckets(durations), sum_value=durations.total)
    return family


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    rows, below = [], 0
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), durations.counts, strict=True):
        below += count
        rows.append((bound, float(below)))
    return rows


def _forwarding(counters: Counters, outstanding: int) -> Iterator[Metric]:
    yield GaugeMetricFamily("dnsproxy_forward_outstanding", "Queries that wait for an upstream.", value=outstanding)
    yield _counter("dnsproxy_forward_sends", "Datagrams sent to upstreams.", counters.forward_sends)
    yield _counter("dnsproxy_forward_retries", "Queries sent again because no reply came.", counters.forward_retries)
    yield _counter("dnsproxy_forward_timeouts", "Queries that no upstream answered in time.", counters.forward_timeouts)
    yield _counter(
        "dnsproxy_forward_replaced",
        "Replies in which addresses that lead here were replaced.",
        counters.forward_replaced,
    )
    yield _counter("dnsproxy_forward_errors", "Network errors towards an upstream.", counters.forward_errors)
    yield _counter(
        "dnsproxy_forward_mismatches", "Datagrams that match no query of this server.", counters.forward_mismatches
    )
    yield _counter(
        "dnsproxy_forward_joined", "Queries that shared the reply to an equal query.", counters.forward_joined
    )
    yield _counter(
        "dnsproxy_forward_overload", "Queries refused: too many were outstanding.", counters.forward_overload
    )
    yield _counter(
        "dnsproxy_forward_stale",
        "Queries discarded after a hang: they were queued for over 2 s, and their clients asked elsewhere.",
        counters.forward_stale,
    )


def _upstreams(server: AnsweringServer) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "dnsproxy_forward_upstream_healthy",
        "1: asked in its turn; 0: failing and asked after the others, or looping back to this server and excluded.",
        labels=["upstream"],
    )
    for one in server.upstream_reports():
        family.add_metric([one.name], not (one.failing or one.looping))
    return family


def _freshness(keeper: TableKeeper, statuses: Iterable[FollowerStatus]) -> Iterator[Metric]:
    synced = GaugeMetricFamily(
        "dnsproxy_table_synced_timestamp_seconds",
        "When the data last matched its source, in seconds since the epoch.",
        labels=["source"],
    )
    if keeper.swapped_time is not None:
        synced.add_metric(["table"], keeper.swapped_time)
    age = GaugeMetricFamily(
        "dnsproxy_source_contact_age_seconds", "Seconds since the last contact with the source.", labels=["source"]
    )
    errors = CounterMetricFamily(
        "dnsproxy_source_errors", "Failed requests to the API server.", labels=["source", "cause"]
    )
    for status in statuses:
        if status.contact_time is not None:
            synced.add_metric([status.kind], status.contact_time)
        since = status.age(trio.current_time())
        if since is not None:
            age.add_metric([status.kind], since)
        for cause, count in status.errors.items():
            errors.add_metric([status.kind, cause], count)
    yield from (synced, age, errors)
