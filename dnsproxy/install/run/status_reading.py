"""Status reading: what `dnsproxy status` reads from a cluster and asks its DNS.

The law: GET requests and DNS queries only. A comparison whose objects may not be read is not made, and the report has
the missing right; it never hides what is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.probe_results import places_to_ask, zones_to_ask
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.read import discover, load_client, read_own_addresses, read_own_pods
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.requests import Fault
from dnsproxy.cluster_dns.taken_hosts import TakenHosts, find_taken_lines
from dnsproxy.cluster_dns.traces import Trace, find_traces
from dnsproxy.dns.rewrite_probe import domain_of
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.change.coverage import Coverage, judge_coverage, serves_every_name
from dnsproxy.install.change.drift import find_drift
from dnsproxy.install.change.planning import plan_apply, plan_found
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.change.rewrite_coverage import RewriteCoverage, find_rewrite_coverage
from dnsproxy.install.report.verdict import StatusReport, Unread
from dnsproxy.install.run.hint_reading import read_hints
from dnsproxy.install.run.live_hostnames import read_coverage, read_taken_hosts
from dnsproxy.install.run.own_rewrites import RewritesReader
from dnsproxy.install.run.result_event import read_last_event
from dnsproxy.install.run.service_lookup import look_up_services
from dnsproxy.install.run.steering_reading import read_steering
from dnsproxy.install.run.version_reading import read_versions
from sidecar.kubernetes.http import ApiClient
from sidecar.loop.side_by_side import side_by_side
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """What a user asks, and where."""

    where: ServiceRef
    own: ObjectRef
    """dnsproxy's Service."""
    dns: Endpoint | None = None
    """The address for queries to the cluster's DNS; None: that of its Service."""
    addresses: tuple[Endpoint, ...] = ()
    """The addresses for queries to dnsproxy; empty: those of the stanza, or else of its Service."""
    admin: Endpoint | None = None
    """The admin port of a running dnsproxy, whose table has the live hostnames; None: the Ingresses have them."""
    zones: tuple[str, ...] = ()
    """Hostnames outside these zones do not count; empty: all count."""
    kubeconfig: str | None = None
    context: str | None = None


async def read_status(request: StatusRequest) -> StatusReport:
    """The report on a cluster. Raises StartError with status 3 if the API server does not answer."""
    client = await load_client(kubeconfig=request.kubeconfig, context=request.context)
    async with client, side_by_side() as start:
        dns = start(_read_dns, client, request)
        addresses = start(read_own_addresses, client, request.own)
        event = start(read_last_event, client, (request.where.namespace, request.own.namespace))
        steered = start(read_steering, client, request.own)
        versions = start(read_versions, client, request.own)
        hints = start(read_hints, client, request.own, request.admin)
    found, traces, live = dns.value.found, dns.value.traces, dns.value.live
    own = () if isinstance(addresses.value, Fault) else addresses.value
    installed = tuple(dict.fromkeys(address for trace in traces for address in trace.addresses))
    loaded = await ask_all((request.dns,) if request.dns else places_to_ask(found), zones_to_ask(traces))
    # One zone is enough: dnsproxy answers in all zones alike.
    answers = await ask_all(request.addresses or installed or own, (".",))
    drift = None
    if found.complete:
        drift = find_drift(found, traces, own=own, named=request.addresses, live=live, within=request.zones)
    # Whether the stanza has the address of the Service is unknown without that.
    needed = {"drift": bool(installed) and drift is None, "dnsproxy": not answers}
    unread = [
        *_unread(addresses.value, *(fact for fact, is_so in needed.items() if is_so)),
        *_unread(dns.value.pods, "names" if live else "coverage"),
        *_unread(dns.value.coverage.unread, "coverage"),
        *_unread(dns.value.taken.unread, "taken"),
        *(one for fault in event.value.faults for one in _unread(fault, "event")),
        *_unread(steered.value.unread, "steering"),
        *(one for fault in versions.value.faults for one in _unread(fault, "versions")),
    ]
    return StatusReport(
        found,
        choose_method(found) if found.complete else Choice(None, "not everything could be read"),
        traces,
        loaded,
        answers,
        drift,
        dns.value.coverage,
        dns.value.taken,
        event.value.last,
        steered.value.document,
        steered.value.unknown,
        _compare_names(found, traces, live, request.zones) if live else None,
        versions.value,
        hints.value,
        tuple(unread),
    )


def _unread(read: object, *facts: str) -> Iterator[Unread]:
    """The facts that rest on a read, if it failed."""
    if isinstance(read, Fault):
        yield from (Unread(fact, read) for fact in facts)


@dataclass(frozen=True, slots=True)
class _ReadDns:
    """The cluster's DNS with our traces in it, and what is compared with these."""

    found: Found
    traces: tuple[Trace, ...]
    coverage: Coverage
    taken: TakenHosts
    live: LiveRewrites | None
    pods: tuple[Endpoint, ...] | Fault
    """The admin ports of dnsproxy's pods; empty if they were not needed."""


async def _read_dns(client: ApiClient, request: StatusRequest) -> _ReadDns:
    found = await discover(client, request.where)
    traces = find_traces(found)
    pods: tuple[Endpoint, ...] | Fault = (request.admin,) if request.admin else ()
    if request.admin is None and traces and not _takes_every_name(traces):
        pods = await read_own_pods(client, request.own)
    async with side_by_side() as start:
        coverage = start(_read_coverage, client, request, found, traces, pods)
        taken = start(_read_taken, client, request, found, traces)
        live = start(_read_names, request, found, traces, pods)
    return _ReadDns(found, traces, coverage.value, taken.value, live.value, pods)


def _takes_every_name(traces: tuple[Trace, ...]) -> bool:
    """Whether the cluster's DNS asks dnsproxy for every name, so that none of its table can be outside."""
    return not any(one.rewrites for one in traces) and serves_every_name(zone for one in traces for zone in one.zones)


async def _read_coverage(
    client: ApiClient,
    request: StatusRequest,
    found: Found,
    traces: tuple[Trace, ...],
    own: tuple[Endpoint, ...] | Fault,
) -> Coverage:
    traces = tuple(trace for trace in traces if trace.method is not Method.OVERRIDE_REWRITES)
    served = [zone for trace in traces for zone in trace.zones]
    if not traces or serves_every_name(served):
        return Coverage()
    chosen = not any(choose_method(found, trace.method).needs_zones for trace in traces)
    pods = () if request.admin or isinstance(own, Fault) else own
    coverage = await read_coverage(client, request.admin, served, pods=pods, within=request.zones, chosen=chosen)
    return (
        coverage if chosen or not coverage.zones else judge_coverage(coverage, _zones_planned(found, traces, coverage))
    )


async def _read_taken(client: ApiClient, request: StatusRequest, found: Found, traces: tuple[Trace, ...]) -> TakenHosts:
    """The live hostnames are read only if there are lines to compare them with, which few clusters have."""
    lines = [line for trace in traces for line in find_taken_lines(found, trace.method, trace.zones)]
    if not lines:
        return TakenHosts()
    pods = await read_own_pods(client, request.own) if request.admin is None else (request.admin,)
    zones = [zone for trace in traces for zone in trace.zones]
    return await read_taken_hosts(client, () if isinstance(pods, Fault) else pods, lines, zones)


async def _read_names(
    request: StatusRequest, found: Found, traces: tuple[Trace, ...], pods: tuple[Endpoint, ...] | Fault
) -> LiveRewrites | None:
    """The names of dnsproxy's table; None if there are no rewrite lines to compare them with."""
    lines = [trace.rewrites for trace in traces if trace.rewrites]
    if not lines:
        return None
    if isinstance(pods, Fault):
        live = LiveRewrites(doubt=str(pods))
    else:
        live = await RewritesReader().read(pods)
    services = {one.service for one in (*live.names, *(row for line in lines for row in line.rewrites)) if one.service}
    places = (request.dns,) if request.dns else places_to_ask(found)
    looked_up = await look_up_services(places, services, domain_of(lines[0].marker))
    return replace(live, absent=looked_up.absent)


def _compare_names(
    found: Found, traces: tuple[Trace, ...], live: LiveRewrites, zones: tuple[str, ...]
) -> RewriteCoverage:
    standing = [row for trace in traces if trace.rewrites for row in trace.rewrites.rewrites]
    try:
        planned = plan_apply(found, choose_method(found, Method.OVERRIDE_REWRITES), Wanted((), zones, live)).rewrites
    except ChangeRefused:
        planned = None
    return find_rewrite_coverage(standing, planned, live)


def _zones_planned(found: Found, traces: tuple[Trace, ...], coverage: Coverage) -> tuple[str, ...]:
    """The zones of an install that takes those of the stanza and those that are missing; all of them if unknown."""
    trace = max(traces, key=lambda trace: len(trace.zones))
    wanted = (*(zone.removesuffix(".") for zone in trace.zones), *coverage.zones)
    try:
        return plan_found(found, choose_method(found, trace.method), Wanted(trace.addresses, wanted)).zones
    except ChangeRefused:
        return wanted
