"""The table of sources: what each value of `--source` reads, and by which rules.

The law: pure. Kinds, versions and the rules of described kinds come from the code; the words here are for a source as a
whole, and a source without words is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.described import table
from dnsproxy.sources.gateway import versions as gateway
from dnsproxy.sources.ingress import INGRESSES
from dnsproxy.sources.names import BUILT_IN, DNS_ENDPOINT, EXTERNAL_DNS, GATEWAY, INGRESS, ISTIO, OTHERS, SERVICE
from dnsproxy.sources.service_source import SERVICES
from dnsproxy.sources.settings import SourceOptions
from dnsproxy.sources.source_plans import plan_other
from docs.tables import format_table

HEAD: Final = ("`--source`", "reads", "hostnames", "class", "counts if", "a wildcard covers")
ONE_LABEL: Final = "one label"
ANY_LABELS: Final = "one or more labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a page says about a source."""

    hostnames: str
    classes: str
    counts_if: str
    wildcards: str = ""
    """With the rule; empty: the rows of the described kinds have it."""


_ANNOTATION: Final = "annotation `kubernetes.io/ingress.class`"
_IN_DNS: Final = f"{ANY_LABELS}, as in DNS ([RFC 4592](https://www.rfc-editor.org/rfc/rfc4592))"

WORDS: Final[Mapping[str, Words]] = {
    INGRESS: Words(
        hostnames="`spec.rules[].host`, and those of `spec.tls[].hosts` that [the rules serve](#tls-sections)",
        classes=f"`spec.ingressClassName`, {_ANNOTATION}, or the default class",
        counts_if="its class exists, or a controller has written its load balancer",
        wildcards=f"{ONE_LABEL}: “wildcard only covers a single DNS label” "
        "([Ingress](https://kubernetes.io/docs/concepts/services-networking/ingress/#hostname-wildcards))",
    ),
    GATEWAY: Words(
        hostnames="`spec.hostnames` of routes and `listeners[].hostname` of Gateways and ListenerSets: what both have, "
        "except where a route [only redirects](#routes-that-only-redirect)",
        classes="`spec.gatewayClassName`; of a route that of its Gateway",
        counts_if="a controller has accepted the Gateway, and a listener of it admits the route",
        wildcards=f"{ANY_LABELS}: “interpreted as a suffix match” "
        "([Listener](https://gateway-api.sigs.k8s.io/reference/spec/#listener))",
    ),
    SERVICE: Words(
        hostnames="annotation `switchback.dev/hostname`, where it [counts](serve.md#the-names-of-a-cluster)",
        classes="none",
        counts_if="it is there",
        wildcards=_IN_DNS,
    ),
    table.TRAEFIK: Words(
        hostnames="`Host` in the rules of `spec.routes[].match`, `HostSNI` in those of an IngressRouteTCP",
        classes=_ANNOTATION,
        counts_if="its rule can match the name",
    ),
    table.OPENSHIFT: Words(
        hostnames="`spec.host`",
        classes="`routerName` of each router that admits it",
        counts_if="a router has admitted it: condition `Admitted` in `status.ingress[]`",
    ),
    table.CONTOUR: Words(
        hostnames="`spec.virtualhost.fqdn`, which only root proxies have",
        classes=f"annotation `projectcontour.io/ingress.class`, {_ANNOTATION}, or `spec.ingressClassName`",
        counts_if="`status.currentStatus` is `valid`, or invalid only for a part of it",
    ),
    ISTIO: Words(
        hostnames="`spec.hosts` of VirtualServices, as far as `spec.servers[].hosts` of their Gateways have them; the "
        "exact ones of Gateways",
        classes="the selector of the Gateway: `istio=ingressgateway`",
        counts_if="it is bound to a Gateway, which is not for egress unless `--class-of` names its selector",
        wildcards=f"{ANY_LABELS}: “an exact match or a suffix match with the server's hosts” "
        "([Server](https://istio.io/latest/docs/reference/config/networking/gateway/#Server))",
    ),
    EXTERNAL_DNS: Words(
        hostnames="annotations `hostname` and `internal-hostname` of `external-dns.kubernetes.io/` or "
        "`external-dns.alpha.kubernetes.io/`, where annotations [count](serve.md#the-names-of-a-cluster)",
        classes="of an Ingress or Gateway its own; of a Service none",
        counts_if="external-dns publishes it, and to the load balancer, to pods or to a ClusterIP",
        wildcards=_IN_DNS,
    ),
    DNS_ENDPOINT: Words(
        hostnames="`spec.endpoints[].dnsName`, with their records of the types A, AAAA and CNAME",
        classes="none",
        counts_if="annotations [count](serve.md#the-names-of-a-cluster) in its namespace, and its addresses are within "
        "`--target-network`; an alias counts while the table answers its target, and is answered as that is",
        wildcards=_IN_DNS,
    ),
}

CUSTOM: Final = (
    "`crd:PLURAL.GROUP:PATH[,PATH]`",
    "`PLURAL` of `GROUP`, in the version that the API server prefers",
    "at `PATH`",
    _ANNOTATION,
    "it is there",
    _IN_DNS,
)


def format_sources() -> str:
    """The table."""
    return format_table(HEAD, [*map(_row, (*BUILT_IN, *OTHERS)), CUSTOM])


def _row(name: str) -> tuple[str, ...]:
    words = WORDS[name]
    wildcards = words.wildcards or f"{ONE_LABEL}: {', '.join(dict.fromkeys(_rules(name)))}"
    return f"`{name}`", _format_kinds(name), words.hostnames, words.classes, words.counts_if, wildcards


def _rules(name: str) -> Iterator[str]:
    """Each rule once, with its links."""
    links: dict[str, dict[str, str]] = {}
    for kind in table.kinds_of(name):
        links.setdefault(kind.rule, {}).setdefault(kind.link, kind.name)
    for rule, found in links.items():
        yield f"{rule} ({', '.join(f'[{kind}]({link})' for link, kind in found.items())})"


def _format_kinds(name: str) -> str:
    """`RESOURCE, RESOURCE of GROUP (VERSION, VERSION)`, a group after the other."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for group, versions, resource in _kinds(name):
        groups.setdefault((group, versions), []).append(f"`{resource}`")
    return "; ".join(
        f"{', '.join(dict.fromkeys(resources))}{f' of `{group}`' if group else ''} ({', '.join(versions)})"
        for (group, versions), resources in groups.items()
    )


def _kinds(name: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Group, versions and plural of each kind that a source follows."""
    if name in _PATHS:
        *before, version, resource = _PATHS[name].strip("/").split("/")
        yield (before[1] if len(before) > 1 else ""), (version,), resource
        return
    watched = gateway.WATCHED if name == GATEWAY else plan_other(ClaimStore(), SourceOptions(name), most=None).kinds
    for kind in watched:
        yield kind.group, kind.versions, kind.resource


_PATHS: Final = {INGRESS: INGRESSES.path, SERVICE: SERVICES.path}
"""`/apis/GROUP/VERSION/RESOURCE`, or `/api/VERSION/RESOURCE`."""
