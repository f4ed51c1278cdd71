"""Collecting facts in two looks: what the API server returns, and what a pod sees.

The law: the second look needs only the facts of the first, so that a pod without any rights can do it for a user who
has them (with a file in between). Nothing is written to the cluster. Each part can fail by itself and is then a
ReadFailure. The paths are computed once, in the first look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from msgspec.structs import replace

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.own_service import ObjectRef
from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.read import discover, read_own
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.doctor.collect.dial_targets import dial_targets, header_targets, names_to_look_up
from dnsproxy.doctor.collect.dialling import dial_all
from dnsproxy.doctor.collect.lookups import look_up_all, public_server
from dnsproxy.doctor.collect.read_hosts import (
    make_service,
    may_be_balanced,
    read_classes,
    read_hosts,
    read_services,
)
from dnsproxy.doctor.collect.read_own import (
    DNSPROXY_ADMIN_PORT,
    RELAY_ADMIN_PORT,
    ask_admin,
    make_dns,
    read_admin,
    read_own_service,
)
from dnsproxy.doctor.collect.read_workloads import read_components, read_provider, read_settings
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.model import VERSION, Admin, Facts, Service
from dnsproxy.doctor.facts.probes import DnsCheck, Lookup, Probe
from dnsproxy.doctor.judge.host_groups import find_groups
from dnsproxy.doctor.judge.paths import CONTROLLERS, Paths, find_paths
from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.errors import StartError

_LABELS: Final = frozenset(name for names in CONTROLLERS.values() for name in names)
_MOST_ZONES: Final = 3
_MOST_OUTSIDE: Final = 40
_TARGET: Final = "service:"

Progress = Callable[[str], None]
"""Called with a description of the current work, for users who wait."""


@dataclass(frozen=True, slots=True)
class Places:
    """Services and servers, as far as the user named them."""

    dns_service: ServiceRef
    service: ObjectRef
    """dnsproxy's own Service."""
    relay: ObjectRef | None = None
    """None: the Service in dnsproxy's settings, or else `relay` in dnsproxy's namespace."""
    dns: Endpoint | None = None
    public: Endpoint | None = None
    admin: Endpoint | None = None
    relay_admin: Endpoint | None = None


async def read_cluster(client: ApiClient, hostname: str, places: Places, progress: Progress) -> tuple[Facts, Paths]:
    """What the API server returns. Raises StartError with status 3 if it does not answer."""
    reader = Reader(client)
    server_version = await reader.check()
    progress("reading hosts and Services")
    hosts, rejected = await read_hosts(reader)
    classes = await read_classes(reader, hosts)
    raw = {f"{one.metadata.namespace}/{one.metadata.name}": one for one in await read_services(reader)}
    services = [service for service in map(make_service, raw.values()) if may_be_balanced(service, _LABELS)]
    facts = Facts(
        VERSION,
        program=version("switchback"),
        taken=datetime.now(UTC).isoformat(timespec="seconds"),
        hostname=hostname,
        server_version=server_version,
        hosts=hosts,
        rejected=rejected,
        classes=classes,
        services=tuple(sorted(services, key=lambda service: service.key)),
    )
    progress("reading controllers and the data plane")
    paths = find_paths(facts)
    meant = {path.service.key for path in paths.paths}
    changed = await read_settings(reader, (one for one in facts.services if one.key in meant), raw)
    facts = replace(
        facts,
        services=_merged(facts.services, changed),
        components=await read_components(reader),
        provider=await read_provider(reader),
    )
    progress("reading the cluster's DNS and our own parts")
    facts = await _read_own_parts(client, reader, facts, places)
    return replace(facts, refusals=reader.failures + facts.refusals), paths.with_services(facts.services)


def _merged(services: Iterable[Service], changed: Iterable[Service]) -> tuple[Service, ...]:
    by_key = {service.key: service for service in changed}
    return tuple(by_key.get(service.key, service) for service in services)


async def _read_own_parts(client: ApiClient, reader: Reader, facts: Facts, places: Places) -> Facts:
    try:
        found = await discover(client, places.dns_service)
        own = await read_own(client, places.service, found.addresses)
    except StartError as error:
        reader.note_failure("the cluster's DNS", str(error))
        return facts
    dnsproxy = await read_own_service(reader, str(places.service), own)
    target = dnsproxy.settings.get("DNSPROXY_TARGET", "")
    default = target.removeprefix(_TARGET) if target.startswith(_TARGET) else f"{places.service.namespace}/relay"
    relay = await read_own_service(reader, str(places.relay or default))
    pages = [] if places.admin else await read_admin(reader, dnsproxy, "dnsproxy", DNSPROXY_ADMIN_PORT)
    pages += [] if places.relay_admin else await read_admin(reader, relay, "relay", RELAY_ADMIN_PORT)
    return replace(facts, dns=make_dns(found, own.stanza_addresses), dnsproxy=dnsproxy, relay=relay, admin=tuple(pages))


async def look_outside(facts: Facts, paths: Paths, places: Places, progress: Progress) -> Facts:
    """The facts with the answers of public DNS, which can be asked from everywhere."""
    public = places.public or public_server(facts.dns.addresses if facts.dns else ())
    names = names_to_look_up(facts, paths)[:_MOST_OUTSIDE] if public else ()
    servers = {"public": public} if public else {}
    lookups = await look_up_all(names, servers, lambda done: progress(f"looked up {done} of {len(names)} names"))
    return replace(facts, lookups=lookups)


async def look(facts: Facts, paths: Paths, places: Places, progress: Progress) -> Facts:
    """The facts with DNS answers and connections as seen from this machine."""
    dns = facts.dns
    cluster = (places.dns,) if places.dns else tuple(_endpoints(dns.ask_at if dns else ()))
    servers = _servers(facts, cluster, places.public)
    names = names_to_look_up(facts, paths)
    count = len(names) * len(servers)
    lookups = await look_up_all(names, servers, lambda done: progress(f"looked up {done} of {count} names"))
    probes = await _dial(facts, paths, lookups, progress)
    progress("asking for dnsproxy")
    stanzas = dns.stanzas if dns else ()
    zones = tuple(dict.fromkeys(zone for stanza in stanzas for zone in stanza.zones))[:_MOST_ZONES] or (".",)
    return replace(
        facts,
        probed=True,
        lookups=lookups,
        probes=probes,
        admin=(*facts.admin, *await _ask_admin_ports(places)),
        loaded=await _check(cluster, zones),
        answers=await _check(_dnsproxy_endpoints(facts), (".",)),
    )


async def _dial(facts: Facts, paths: Paths, lookups: Sequence[Lookup], progress: Progress) -> tuple[Probe, ...]:
    """The bare connections, then those with a header where a bare one failed."""
    targets = dial_targets(facts, find_groups(facts, paths, lookups), lookups)
    first = await dial_all(targets, lambda done: progress(f"dialled {done} of {len(targets)} ports"))
    again = header_targets(first)
    second = await dial_all(again, lambda done: progress(f"dialled {done} of {len(again)} ports with a header"))
    return (*first, *second)


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
