"""Reads sources: the hostnames of the kinds that `dnsproxy serve --source` follows beside Ingresses and Gateways.

The law: as in read_hosts. The names of the sources are those of the running dnsproxy's settings and those that the user
gave; which of their objects it leaves out (--namespace, --class-of) does not matter for where a host is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dnsproxy.dns.addresses import is_address
from dnsproxy.doctor.collect.read_kinds import Objects, read_kinds, read_objects, settle
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.targets import OWN
from dnsproxy.sources.described.classes import DescribedObject
from dnsproxy.sources.described.custom import PREFIX
from dnsproxy.sources.described.field_path import parse_path, values_at
from dnsproxy.sources.external_dns.dns_endpoint import SOURCE as DNS_ENDPOINTS
from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.names import GATEWAY, INGRESS, ISTIO, SERVICE, parse_source_class, parse_source_name
from dnsproxy.sources.service_source import SERVICES, ServiceSource
from dnsproxy.sources.settings import IngressOptions, SourceOptions
from dnsproxy.sources.source_plans import plan_other
from dnsproxy.sources.watched_kinds import WatchedKind
from sidecar.kubernetes.objects import Collection
from sidecar.loop.side_by_side import read_each, side_by_side

VARIABLE: Final = "DNSPROXY_SOURCE"
TLS_HOSTS: Final = "DNSPROXY_TLS_HOSTS"
_CLASSES: Final = "DNSPROXY_CLASS_OF"
_ALWAYS_READ: Final = frozenset([INGRESS, GATEWAY])
_TLS: Final = (parse_path("tls"), parse_path("virtualhost.tls"))
"""In a spec: of IngressRoutes and Routes, and of HTTPProxies."""


def followed_sources(settings: Mapping[str, str], named: Iterable[str] = ()) -> tuple[SourceOptions, ...]:
    """The sources of a dnsproxy with these settings, and those that a user named, without those that are always read.

    A value that no source has is left out: another version of dnsproxy may know it.
    """
    values = (value for variable, value in settings.items() if names_sources(variable))
    names = dict.fromkeys([*named, *(name for value in values for name in value.split())])
    classes = frozenset(_classes(settings.get(_CLASSES, "").split()))
    found = _with_joined_paths(name for name in names if name not in _ALWAYS_READ and _is_source(name))
    # Istio's objects for egress count only if their class is named.
    return tuple(SourceOptions(name, classes if name == ISTIO else frozenset()) for name in sorted(found))


def followed_ingresses(settings: Mapping[str, str]) -> IngressOptions:
    """Which hosts of Ingresses a dnsproxy with these settings takes, of whatever class.

    A value that this version does not have counts as the default.
    """
    value = settings.get(TLS_HOSTS, "")
    return IngressOptions(tls_hosts=TlsHosts(value)) if value in set(TlsHosts) else IngressOptions()


def names_sources(variable: str) -> bool:
    """Whether it is that of --source, or adds values to it; beside the flag itself none counts (GatheringOption)."""
    return variable == VARIABLE or variable.startswith(f"{VARIABLE}_")


def _with_joined_paths(names: Iterable[str]) -> Iterator[str]:
    """With one source for each custom kind: the claims by one of two would take the place of the other's."""
    paths: dict[str, dict[str, None]] = {}
    for name in names:
        if name.startswith(PREFIX):
            resource, _, places = name.removeprefix(PREFIX).partition(":")
            paths.setdefault(resource, {}).update(dict.fromkeys(places.split(",")))
        else:
            yield name
    yield from (f"{PREFIX}{resource}:{','.join(found)}" for resource, found in paths.items())


def _classes(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        try:
            source, name = parse_source_class(text)
        except ValueError:
            continue
        if source == ISTIO:
            yield name


def _is_source(name: str) -> bool:
    try:
        return bool(parse_source_name(name))
    except ValueError:
        return False


async def read_sources(reader: Reader, store: ClaimStore, sources: Iterable[SourceOptions]) -> dict[str, Objects]:
    """Adds the claims of sources to a store. Returns their objects, by kind."""
    found = await read_each(lambda options: _read_source(reader, store, options), sources)
    return {kind: objects for one in found for kind, objects in one.items()}


async def _read_source(reader: Reader, store: ClaimStore, options: SourceOptions) -> dict[str, Objects]:
    if options.name == SERVICE:
        services = await read_objects(reader, SERVICES)
        ServiceSource(store).change(services)
        return {}
    plan = plan_other(store, options, most=None)
    async with side_by_side() as start:
        kinds = start(read_kinds, reader, plan.kinds, _name)
        beside = start(_read_beside, reader, plan.beside)
    # Before the objects: those that name no class are for one of these.
    for kind, objects in (*beside.value.items(), *kinds.value.items()):
        plan.source.change(kind, objects)
    settle(plan.source)
    return kinds.value


def tls_claims(store: ClaimStore, objects: Mapping[str, Objects]) -> frozenset[tuple[str, str]]:
    """Origin and hostname of the claims of objects with TLS, by kind; Istio's and those of DNS records do not say."""
    return frozenset(
        (str(claim.origin), claim.hostname)
        for kind, of_kind in objects.items()
        for key, one in of_kind.items()
        if isinstance(one, DescribedObject) and any(True for path in _TLS for _ in values_at(one.spec, path))
        for claim in store.claims_at(kind, key)
    )


def points_of(claim: Claim) -> tuple[str, ...]:
    """Where clients outside connect, as far as an object says it: its load balancer, or its own record."""
    terms = claim.terms
    if terms.status or claim.origin.kind != DNS_ENDPOINTS:
        return terms.status
    texts = () if terms.target in (None, OWN) else (terms.target or "").split(",")
    return tuple(text for text in texts if is_address(text)) or terms.declared


def _name(kind: WatchedKind) -> str:
    return f"list {kind.resource}.{kind.group}" if kind.group else f"list {kind.resource}"


async def _read_beside(reader: Reader, collections: Iterable[Collection[Any]]) -> dict[str, Objects]:
    collections = tuple(collections)
    found = await read_each(lambda one: read_objects(reader, one), collections)
    return {one.kind: objects for one, objects in zip(collections, found, strict=True)}
