"""Collecting facts in two looks: what the API server returns, and what a pod sees.

The law: the second look needs only the facts of the first, so that a pod without any rights can do it for a user who
has them (with a file in between). Nothing is written to the cluster. Each part can fail by itself and is then a
ReadFailure. The paths are computed once, in the first look.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from msgspec.structs import replace

from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import FoundOwn
from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.read import Deadlines, discover, read_own
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.doctor.collect.dial_targets import dial_targets, names_to_look_up
from dnsproxy.doctor.collect.dialling import dial_with_headers
from dnsproxy.doctor.collect.lookups import look_up_all, public_server
from dnsproxy.doctor.collect.read_hosts import read_hosts, read_services
from dnsproxy.doctor.collect.read_ip_mode import read_ip_mode
from dnsproxy.doctor.collect.read_nodes import find_pod_networks, read_nodes
from dnsproxy.doctor.collect.read_own import (
    DNSPROXY_ADMIN_PORT,
    RELAY_ADMIN_PORT,
    ask_admin,
    make_dns,
    read_admin,
    read_own_service,
    with_found,
)
from dnsproxy.doctor.collect.read_relay import read_relay
from dnsproxy.doctor.collect.read_settings import read_settings, with_component_settings
from dnsproxy.doctor.collect.read_sources import followed_sources
from dnsproxy.doctor.collect.read_workloads import read_components, read_daemon_sets
from dnsproxy.doctor.collect.reader import REQUEST_SECONDS, Progress, Reader
from dnsproxy.doctor.facts.cluster_dns import ClusterDns
from dnsproxy.doctor.facts.model import VERSION, Admin, Component, Facts, OwnService, Service
from dnsproxy.doctor.facts.probes import DnsCheck
from dnsproxy.doctor.judge.host_groups import find_groups
from dnsproxy.doctor.judge.paths import Paths, find_paths
from dnsproxy.doctor.judge.refusals import DIALLING, LOOKING_UP
from dnsproxy.sources.settings import SourceOptions
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.reads import Reads
from sidecar.kubernetes.shared_reads import SharedReads
from sidecar.kubernetes.structs.workload import Workload
from sidecar.loop.side_by_side import Pending, side_by_side
from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.errors import StartError

_MOST_ZONES: Final = 3
_MOST_OUTSIDE: Final = 40
_DEADLINES: Final = Deadlines(response=REQUEST_SECONDS, rounds=6 * REQUEST_SECONDS)
# What is reported if the time was too short: its name in refusals.py, and the word for its items.
_LOOKING_UP: Final = (LOOKING_UP, "look-ups")
_DIALLING: Final = (DIALLING, "connections")


@dataclass(frozen=True, slots=True)
class Places:
    """Services and servers, as far as the user named them."""

    dns_service: ServiceRef
    service: ObjectRef
    """dnsproxy's own Service."""
    relay: ObjectRef | None = None
    """None: the Service in dnsproxy's settings, the route Services, or else `relay` in dnsproxy's namespace."""
    dns: Endpoint | None = None
    public: Endpoint | None = None
    admin: Endpoint | None = None
    relay_admin: Endpoint | None = None
    sources: tuple[str, ...] = ()
    """Values of `--source`, beside those that dnsproxy's settings name."""


async def read_cluster(client: ApiClient, hostname: str, places: Places, progress: Progress) -> tuple[Facts, Paths]:
    """What the API server returns. Raises StartError with status 3 if it does not answer."""
    shared = SharedReads(client)
    reader = Reader(shared, progress)
    server_version = await reader.check()
    facts = Facts(
        VERSION,
        program=version("switchback"),
        taken=datetime.now(UTC).isoformat(timespec="seconds"),
        hostname=hostname,
        server_version=server_version,
    )
    async with side_by_side() as start:
        dnsproxy = start(read_own_service, reader, str(places.service))
        hosts = start(_read_hosts_and_controllers, reader, facts, _Sources(dnsproxy, places.sources))
        own = start(_read_own_parts, shared, reader, places, dnsproxy)
        policy = start(read_ip_mode, reader)
    facts, paths = hosts.value
    dns, own_service, relay, admin = own.value
    facts = replace(
        facts,
        ip_mode_policy=policy.value,
        dns=dns,
        dnsproxy=own_service,
        relay=relay,
        admin=admin,
        refusals=reader.failures,
    )
    return facts, paths


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources to read beside Ingresses and Gateways."""

    dnsproxy: Pending[OwnService]
    named: tuple[str, ...]

    async def wait(self) -> Sequence[SourceOptions]:
        """Those of dnsproxy's settings, once they are read, and those that the user named."""
        return followed_sources((await self.dnsproxy.wait()).settings, self.named)


async def _read_hosts_and_controllers(reader: Reader, facts: Facts, sources: _Sources) -> tuple[Facts, Paths]:
    async with side_by_side() as start:
        hosts = start(read_hosts, reader, sources.wait)
        found = start(read_services, reader)
        nodes = start(read_nodes, reader)
        data_plane = start(_read_data_plane, reader)
    services, selectors = found.value
    daemon_sets, components = data_plane.value
    names = None if daemon_sets is None else [one.metadata.name for one in daemon_sets]
    facts = replace(
        facts,
        sources=tuple(one.name for one in await sources.wait()),
        hosts=hosts.value.hosts,
        rejected=hosts.value.rejected,
        classes=hosts.value.classes,
        services=services,
        components=components,
        provider=nodes.value.provider,
        pod_networks=find_pod_networks(nodes.value.pod_networks, components, names),
        node_addresses=nodes.value.addresses,
    )
    paths = find_paths(facts)
    controllers = {one.name: one.controller for one in facts.classes}
    changed = await read_settings(reader, paths.paths, selectors, daemon_sets or (), controllers)
    facts = replace(facts, services=_merged(facts.services, with_component_settings(changed, components)))
    return facts, paths.with_services(facts.services)


async def _read_data_plane(reader: Reader) -> tuple[list[Workload] | None, tuple[Component, ...]]:
    daemon_sets = await read_daemon_sets(reader)
    return daemon_sets, await read_components(reader, daemon_sets or ())


def _merged(services: Iterable[Service], changed: Iterable[Service]) -> tuple[Service, ...]:
    by_key = {service.key: service for service in changed}
    return tuple(by_key.get(service.key, service) for service in services)


_OwnParts = tuple[ClusterDns | None, OwnService, OwnService, tuple[Admin, ...]]


async def _read_own_parts(client: Reads, reader: Reader, places: Places, own: Pending[OwnService]) -> _OwnParts:
    async with side_by_side() as start:
        found = start(_discover, client, reader, places)
        parts = start(_read_own_services, reader, places, own)
    dnsproxy, relay, pages = parts.value
    if found.value is None:
        return None, dnsproxy, relay, pages
    dns, found_own = found.value
    return make_dns(dns, found_own.stanza_addresses), with_found(dnsproxy, found_own), relay, pages


async def _discover(client: Reads, reader: Reader, places: Places) -> tuple[Found, FoundOwn] | None:
    what = "the cluster's DNS"
    try:
        async with reader.turn(what):
            found = await discover(client, places.dns_service, deadlines=_DEADLINES)
            return found, await read_own(client, places.service, found.addresses, deadlines=_DEADLINES)
    except StartError as error:
        reader.note_failure(what, str(error))
        return None


async def _read_own_services(
    reader: Reader, places: Places, own: Pending[OwnService]
) -> tuple[OwnService, OwnService, tuple[Admin, ...]]:
    dnsproxy = await own.wait()
    relay = await read_relay(reader, dnsproxy, places.relay)
    async with side_by_side() as start:
        asked = [
            start(read_admin, reader, part, program, port)
            for place, part, program, port in (
                (places.admin, dnsproxy, "dnsproxy", DNSPROXY_ADMIN_PORT),
                (places.relay_admin, relay, "relay", RELAY_ADMIN_PORT),
            )
            if place is None
        ]
    return dnsproxy, relay, tuple(page for pages in asked for page in pages.value)


async def look_outside(facts: Facts, paths: Paths, places: Places, progress: Progress) -> Facts:
    """The facts with the answers of public DNS, which can be asked from everywhere."""
    public = places.public or public_server(facts.dns.addresses if facts.dns else ())
    names = names_to_look_up(facts, paths)[:_MOST_OUTSIDE] if public else ()
    servers = {"public": public} if public else {}
    lookups = await look_up_all(names, servers, lambda done: progress(f"looked up {done} of {len(names)} names"))
    return replace(facts, lookups=lookups.results, refusals=(*facts.refusals, *lookups.failures(*_LOOKING_UP)))


async def look(facts: Facts, paths: Paths, places: Places, progress: Progress) -> Facts:
    """The facts with DNS answers and connections as seen from this machine."""
    dns = facts.dns
    cluster = (places.dns,) if places.dns else tuple(_endpoints(dns.ask_at if dns else ()))
    servers = _servers(facts, cluster, places.public)
    names = names_to_look_up(facts, paths)
    count = len(names) * len(servers)
    lookups = await look_up_all(names, servers, lambda done: progress(f"looked up {done} of {count} names"))
    targets = dial_targets(facts, find_groups(facts, paths, lookups.results), lookups.results)
    probes = await dial_with_headers(targets, progress)
    progress("asking for dnsproxy")
    stanzas = dns.stanzas if dns else ()
    markers = tuple(stanza.marker for stanza in stanzas if stanza.marker)
    zones = tuple(dict.fromkeys(zone for stanza in stanzas for zone in stanza.zones))[:_MOST_ZONES]
    return replace(
        facts,
        probed=True,
        lookups=lookups.results,
        probes=probes.results,
        admin=(*facts.admin, *await _ask_admin_ports(places)),
        loaded=await _check(cluster, (*markers, *zones) or (".",)),
        answers=await _check(_dnsproxy_endpoints(facts), (".",)),
        refusals=(*facts.refusals, *lookups.failures(*_LOOKING_UP), *probes.failures(*_DIALLING)),
    )


def _servers(facts: Facts, cluster: tuple[Endpoint, ...], public: Endpoint | None) -> dict[str, Endpoint]:
    """The DNS servers to ask: one of the cluster, and a public one."""
    dns = facts.dns
    own = [*(dns.addresses if dns else ()), *(dns.node_local_addresses if dns else ())]
    public = public or public_server([*own, *(endpoint.host for endpoint in cluster)])
    return ({"cluster": cluster[0]} if cluster else {}) | ({"public": public} if public else {})


def _dnsproxy_endpoints(facts: Facts) -> tuple[Endpoint, ...]:
    """Where the stanzas ask dnsproxy; without a stanza, the addresses of its Service."""
    stanzas = facts.dns.stanzas if facts.dns else ()
    found = tuple(dict.fromkeys(_endpoints(address for stanza in stanzas for address in stanza.addresses)))
    return found or tuple(_endpoints(facts.dnsproxy.ask_at if facts.dnsproxy else ()))


async def _ask_admin_ports(places: Places) -> list[Admin]:
    named = ((places.admin, "dnsproxy"), (places.relay_admin, "relay"))
    return [await ask_admin(endpoint, program) for endpoint, program in named if endpoint is not None]


async def _check(endpoints: Iterable[Endpoint], zones: Iterable[str]) -> tuple[DnsCheck, ...]:
    return tuple(map(_dns_check, await ask_all(tuple(endpoints), tuple(zones))))


def _dns_check(asked: ProbeResult) -> DnsCheck:
    forwards = tuple(sorted({one.forwards for one in asked.outcomes if one.forwards}))
    return DnsCheck(str(asked.endpoint), asked.zone, asked.state.value, asked.said, forwards)


def _endpoints(texts: Iterable[str]) -> Iterable[Endpoint]:
    for text in texts:
        try:
            yield parse_endpoint(text, default_port=DNS_PORT)
        except ValueError:
            continue
