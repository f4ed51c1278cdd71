"""Status reading: what `dnsproxy status` reads from a cluster and asks its DNS.

The law: GET requests and DNS queries only. A comparison whose objects may not be read is left out, and the report says
so; it never hides what is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.probe_results import places_to_ask, zones_to_ask
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.read import discover, load_client, read_own_addresses, read_own_pods
from dnsproxy.cluster_dns.traces import Trace, find_traces
from dnsproxy.dns.rewrite_probe import domain_of
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.change.coverage import Coverage, judge_coverage, serves_every_name
from dnsproxy.install.change.drift import find_drift
from dnsproxy.install.change.planning import plan_apply, plan_found
from dnsproxy.install.change.refusal import ChangeRefused
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.change.rewrite_coverage import RewriteCoverage, find_rewrite_coverage
from dnsproxy.install.report.verdict import StatusReport
from dnsproxy.install.run.live_hostnames import read_coverage
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
    found, traces, coverage, live = dns.value
    own, steering = addresses.value, steered.value
    installed = tuple(dict.fromkeys(address for trace in traces for address in trace.addresses))
    loaded = await ask_all((request.dns,) if request.dns else places_to_ask(found), zones_to_ask(traces))
    # One zone is enough: dnsproxy answers in all zones alike.
    answers = await ask_all(request.addresses or installed or own, (".",))
    drift = None
    if found.complete:
        drift = find_drift(found, traces, own=own, named=request.addresses, live=live, within=request.zones)
    names = _compare_names(found, traces, live, request.zones) if live else None
    own_parts = drift, coverage, event.value, steering.document, steering.unknown, names, versions.value
    return StatusReport(found, choose_method(found), traces, loaded, answers, *own_parts)


async def _read_dns(
    client: ApiClient, request: StatusRequest
) -> tuple[Found, tuple[Trace, ...], Coverage, LiveRewrites | None]:
    """The cluster's DNS with our traces in it, and what is compared with these."""
    found = await discover(client, request.where)
    traces = find_traces(found)
    async with side_by_side() as start:
        coverage = start(_read_coverage, client, request, found, traces)
        live = start(_read_names, client, request, found, traces)
    return found, traces, coverage.value, live.value


async def _read_coverage(
    client: ApiClient, request: StatusRequest, found: Found, traces: tuple[Trace, ...]
) -> Coverage:
    traces = tuple(trace for trace in traces if trace.method is not Method.OVERRIDE_REWRITES)
    served = [zone for trace in traces for zone in trace.zones]
    if not traces or serves_every_name(served):
        return Coverage()
    chosen = not any(choose_method(found, trace.method).needs_zones for trace in traces)
    pods = () if request.admin else await read_own_pods(client, request.own)
    coverage = await read_coverage(client, request.admin, served, pods=pods, within=request.zones, chosen=chosen)
    return (
        coverage if chosen or not coverage.zones else judge_coverage(coverage, _zones_planned(found, traces, coverage))
    )


async def _read_names(
    client: ApiClient, request: StatusRequest, found: Found, traces: tuple[Trace, ...]
) -> LiveRewrites | None:
    """The names of dnsproxy's table; None if there are no rewrite lines to compare them with."""
    lines = [trace.rewrites for trace in traces if trace.rewrites]
    if not lines:
        return None
    pods = (request.admin,) if request.admin else await read_own_pods(client, request.own)
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
