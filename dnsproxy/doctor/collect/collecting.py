"""Collecting facts, the first look: what the API server returns.

The law: the second look (looking.py) needs only the facts of the first, so that a pod without any rights can do it for
a user who has them (with a file in between). Nothing is written to the cluster. Each part can fail by itself and is
then a ReadFailure. The paths are computed once, here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.own_service import FoundOwn
from dnsproxy.cluster_dns.read import Deadlines, discover, read_own
from dnsproxy.doctor.collect.places import Places
from dnsproxy.doctor.collect.read_hosts import read_hosts, read_services
from dnsproxy.doctor.collect.read_ip_mode import read_ip_mode
from dnsproxy.doctor.collect.read_nodes import find_pod_networks, read_nodes
from dnsproxy.doctor.collect.read_own import (
    DNSPROXY_ADMIN_PORT,
    RELAY_ADMIN_PORT,
    make_dns,
    read_admin,
    read_own_service,
    with_found,
)
from dnsproxy.doctor.collect.read_relay import read_relay
from dnsproxy.doctor.collect.read_settings import read_settings, with_component_settings
from dnsproxy.doctor.collect.read_sources import followed_ingresses, followed_sources
from dnsproxy.doctor.collect.read_workloads import read_components, read_daemon_sets
from dnsproxy.doctor.collect.reader import REQUEST_SECONDS, Progress, Reader
from dnsproxy.doctor.facts.cluster_dns import ClusterDns
from dnsproxy.doctor.facts.model import VERSION, Admin, Component, Facts, OwnService, Service
from dnsproxy.doctor.judge.paths import Paths, find_paths
from dnsproxy.sources.settings import IngressOptions, SourceOptions
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.reads import Reads
from sidecar.kubernetes.shared_reads import SharedReads
from sidecar.kubernetes.structs.workload import Workload
from sidecar.loop.side_by_side import Pending, side_by_side
from sidecar.values.build import own_build
from sidecar.values.errors import StartError

_DEADLINES: Final = Deadlines(response=REQUEST_SECONDS, rounds=6 * REQUEST_SECONDS)


async def read_cluster(client: ApiClient, hostname: str, places: Places, progress: Progress) -> tuple[Facts, Paths]:
    """What the API server returns. Raises StartError with status 3 if it does not answer."""
    shared = SharedReads(client)
    reader = Reader(shared, progress)
    server_version = await reader.check()
    facts = Facts(
        VERSION,
        program=own_build().version,
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

    async def wait_ingresses(self) -> IngressOptions:
        """Which hosts of Ingresses dnsproxy takes, once its settings are read."""
        return followed_ingresses((await self.dnsproxy.wait()).settings)


async def _read_hosts_and_controllers(reader: Reader, facts: Facts, sources: _Sources) -> tuple[Facts, Paths]:
    async with side_by_side() as start:
        hosts = start(read_hosts, reader, sources.wait, sources.wait_ingresses)
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
