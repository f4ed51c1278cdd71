"""Collecting: the facts, in two looks: what the API server tells, and what a pod sees of it.

The law: the second rests on the first alone, so that a pod without any rights can do it for a person who has them (a
file between them). Nothing is ever written to the cluster. Every part can fail alone and is then a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from dnsproxy.doctor.collect.dial_targets import names_to_look_up, targets_of
from dnsproxy.doctor.collect.dialling import dial_all
from dnsproxy.doctor.collect.lookups import look_up_all, public_server
from dnsproxy.doctor.collect.read_hosts import make_service, may_be_balanced, read_classes, read_hosts, read_services
from dnsproxy.doctor.collect.read_own import (
    DNSPROXY_ADMIN_PORT,
    RELAY_ADMIN_PORT,
    ask_admin,
    make_dns,
    read_admin,
    read_part,
)
from dnsproxy.doctor.collect.read_workloads import read_components, read_provider, read_settings
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.model import VERSION, Asked, Facts, Service
from dnsproxy.doctor.judge.paths import CONTROLLERS, find_roads
from sidecar.endpoints import Endpoint, parse_endpoint
from sidecar.errors import StartError
from sidecar.kubernetes.http import ApiClient

_LABELS: Final = frozenset(name for names in CONTROLLERS.values() for name in names)
_DNS_PORT: Final = 53
_MOST_ZONES: Final = 3
_MOST_OUTSIDE: Final = 40
_TARGET: Final = "service:"

Tell = Callable[[str], None]
"""Told what is being done, for people who wait."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are, as far as a person has said."""

    dns_service: ServiceRef
    service: ObjectRef
    """dnsproxy's own Service."""
    relay: ObjectRef | None = None
    """None: the one that dnsproxy's settings name, else `relay` beside dnsproxy."""
    dns: Endpoint | None = None
    public: Endpoint | None = None
    admin: Endpoint | None = None
    relay_admin: Endpoint | None = None


async def read_cluster(client: ApiClient, hostname: str, places: Places, tell: Tell) -> Facts:
    """What the API server tells. Raises StartError with status 3 where it does not answer."""
    reader = Reader(client)
    server_version = await reader.check()
    tell("reading hosts and Services")
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
    tell("reading controllers and the data plane")
    meant = {road.service.key for road in find_roads(facts).roads}
    kept = await read_settings(reader, (one for one in facts.services if one.key in meant), raw)
    facts = replace(
        facts,
        services=_merged(facts.services, kept),
        components=await read_components(reader),
        provider=await read_provider(reader),
    )
    tell("reading the cluster's DNS and our own parts")
    facts = await _read_own(client, reader, facts, places)
    return replace(facts, refusals=reader.refusals + facts.refusals)


def _merged(services: Iterable[Service], changed: Iterable[Service]) -> tuple[Service, ...]:
    by_key = {service.key: service for service in changed}
    return tuple(by_key.get(service.key, service) for service in services)


async def _read_own(client: ApiClient, reader: Reader, facts: Facts, places: Places) -> Facts:
    try:
        found = await discover(client, places.dns_service)
        own = await read_own(client, places.service, found.addresses)
    except StartError as error:
        reader.refuse("the cluster's DNS", str(error))
        return facts
    part = await read_part(reader, str(places.service), own)
    named = part.settings.get("DNSPROXY_TARGET", "")
    beside = named.removeprefix(_TARGET) if named.startswith(_TARGET) else f"{places.service.namespace}/relay"
    relay = await read_part(reader, str(places.relay or beside))
    pages = [] if places.admin else await read_admin(reader, part, "dnsproxy", DNSPROXY_ADMIN_PORT)
    pages += [] if places.relay_admin else await read_admin(reader, relay, "relay", RELAY_ADMIN_PORT)
    return replace(facts, dns=make_dns(found), dnsproxy=part, relay=relay, admin=tuple(pages))


async def look_outside(facts: Facts, places: Places, tell: Tell) -> Facts:
    """The facts with what public DNS says, which can be asked from everywhere."""
    dns = facts.dns
    public = places.public or public_server(dns.addresses if dns else ())
    names = names_to_look_up(facts)[:_MOST_OUTSIDE] if public else ()
    count = len(names)
    servers = {"public": public} if public else {}
    lookups = await look_up_all(names, servers, lambda done: tell(f"looked up {done} of {count} names"))
    return replace(facts, lookups=lookups)


async def look(facts: Facts, places: Places, tell: Tell) -> Facts:
    """The facts with what is seen from here: DNS answers, and connections."""
    dns = facts.dns
    asked_at = [places.dns] if places.dns else list(_endpoints(dns.ask_at if dns else ()))
    cluster = [*(dns.addresses if dns else ()), *(dns.node_local_addresses if dns else ())]
    public = places.public or public_server([*cluster, *(endpoint.host for endpoint in asked_at)])
    servers = ({"cluster": asked_at[0]} if asked_at else {}) | ({"public": public} if public else {})
    names = names_to_look_up(facts)
    count = len(names) * len(servers)
    lookups = await look_up_all(names, servers, lambda done: tell(f"looked up {done} of {count} names"))
    targets = targets_of(facts, lookups)
    probes = await dial_all(targets, lambda done: tell(f"dialled {done} of {len(targets)} ports"))
    tell("asking for dnsproxy")
    stanzas = dns.stanzas if dns else ()
    zones = tuple(dict.fromkeys(zone for stanza in stanzas for zone in stanza.zones))[:_MOST_ZONES] or (".",)
    direct = tuple(dict.fromkeys(_endpoints(address for stanza in stanzas for address in stanza.addresses)))
    if not direct and facts.dnsproxy is not None:
        direct = tuple(_endpoints(facts.dnsproxy.ask_at))
    pages = list(facts.admin)
    for endpoint, program in ((places.admin, "dnsproxy"), (places.relay_admin, "relay")):
        if endpoint is not None:
            pages.append(await ask_admin(endpoint, program))
    return replace(
        facts,
        probed=True,
        lookups=lookups,
        probes=probes,
        loaded=tuple(map(_asked, await ask_all(asked_at, zones))),
        answers=tuple(map(_asked, await ask_all(direct, (".",)))),
        admin=tuple(pages),
    )


def _asked(asked: ProbeResult) -> Asked:
    return Asked(str(asked.endpoint), asked.zone, asked.state.value, asked.said)


def _endpoints(texts: Iterable[str]) -> Iterable[Endpoint]:
    for text in texts:
        try:
            yield parse_endpoint(text, default_port=_DNS_PORT)
        except ValueError:
            continue
