"""Source plans: for each `--source` that a source_follower follows, the kinds to watch and what makes claims of them.

The law: pure; a new source is one more case here, and a described one only a row of its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.answering_claim import answering_claim
from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.registry import Registry
from dnsproxy.sources.described import table
from dnsproxy.sources.described.classes import classes_for
from dnsproxy.sources.described.custom import PREFIX, parse_custom
from dnsproxy.sources.described.kind import DescribedKind
from dnsproxy.sources.described.source import DescribedSource
from dnsproxy.sources.external_dns import kinds as external_dns
from dnsproxy.sources.external_dns.dns_endpoint_source import DnsEndpointSource
from dnsproxy.sources.external_dns.source import ExternalDnsSource
from dnsproxy.sources.gateway import versions as gateway
from dnsproxy.sources.gateway.source import GatewaySource
from dnsproxy.sources.istio import kinds as istio
from dnsproxy.sources.istio.source import IstioSource
from dnsproxy.sources.names import DNS_ENDPOINT, EXTERNAL_DNS, ISTIO
from dnsproxy.sources.object_source import ObjectSource
from dnsproxy.sources.settings import GatewayOptions, SourceOptions
from dnsproxy.sources.watched_kinds import WatchedKind
from sidecar.kubernetes.objects import Collection

_RELATED: Final[Mapping[str, tuple[WatchedKind, ...]]] = MappingProxyType(
    {EXTERNAL_DNS: external_dns.WATCHED, ISTIO: istio.WATCHED, DNS_ENDPOINT: external_dns.ENDPOINTS}
)
"""The kinds of the sources that no table describes."""


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What a follower needs of a source."""

    source: ObjectSource
    kinds: tuple[WatchedKind, ...]
    beside: tuple[Collection[Any], ...] = ()
    """As SourceFollower's."""
    report: Callable[[str, str], frozenset[str]] | None = None
    """Reports an object once more (kind, key); None if the source keeps no objects, so that they are read again."""
    aliases: DnsEndpointSource | None = None
    """The source, if its names may be aliases of other ones, for which it needs an AliasObserver."""


def plan_gateway(store: ClaimSink, options: GatewayOptions) -> SourcePlan:
    """The Gateway API."""
    source = GatewaySource(store, options=options)
    return SourcePlan(source, gateway.WATCHED, (gateway.NAMESPACES,), source.report)


def plan_other(
    store: ClaimSink, options: SourceOptions, *, most: int | None, registry: Registry | None = None
) -> SourcePlan:
    """A source by its name (names.py). `most`: the hosts of one object that are read.

    `registry`: behind `store`; None without a table, when every alias claims its name.
    """
    if options.name == EXTERNAL_DNS:
        annotated = ExternalDnsSource(store, classes=options.classes, most=most)
        return SourcePlan(annotated, _watched(options.name), external_dns.BESIDE, annotated.report)
    if options.name == ISTIO:
        bound = IstioSource(store, classes=options.classes, most=most)
        return SourcePlan(bound, _watched(options.name), report=bound.report)
    if options.name == DNS_ENDPOINT:
        return _plan_dns_endpoints(store, most, registry)
    rows = _described_kinds(options.name)
    source = DescribedSource(store, rows, classes=options.classes, most=most)
    beside = (classes_for(options.name),) if any(kind.controller for kind in rows) else ()
    return SourcePlan(source, _watched(options.name), beside)


def _plan_dns_endpoints(store: ClaimSink, most: int | None, registry: Registry | None) -> SourcePlan:
    answering = partial(answering_claim, registry) if registry is not None else _any_claim
    source = DnsEndpointSource(store, most=most, answering=answering)
    return SourcePlan(source, _watched(DNS_ENDPOINT), aliases=source)


def _any_claim(hostname: str) -> Claim:
    """In place of that by which the table answers a hostname."""
    return Claim(hostname, Reach.NAME, Origin("", ""))


def claiming_kinds(name: str) -> tuple[str, ...]:
    """The sources in the claim store that a source of this name feeds: each kind that names hosts."""
    return tuple(one.kind for one in _watched(name) if one.names_hosts)


def _watched(name: str) -> tuple[WatchedKind, ...]:
    if name in _RELATED:
        return _RELATED[name]
    return tuple(kind.watched for kind in _described_kinds(name))


def _described_kinds(name: str) -> tuple[DescribedKind, ...]:
    return (parse_custom(name),) if name.startswith(PREFIX) else table.kinds_of(name)
