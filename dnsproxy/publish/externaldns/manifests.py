"""The manifest of a DNS record: a DNSEndpoint, or a headless Service with annotations.

The law: one record for each hostname, with the addresses of both families, in an order that depends on the names alone.
A manifest carries the label of its publisher and a digest of its content, so that a removed field is noticed too. Pure.
The formats: https://kubernetes-sigs.github.io/external-dns/latest/docs/sources/crd/ and .../sources/service/.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from urllib.parse import quote

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import Reach
from dnsproxy.publish.configmaps.manifests import MANAGED_BY, MANAGER
from dnsproxy.publish.externaldns.object_names import label_name, subdomain_name

INSTANCE: Final = "switchback.dev/instance"
"""The label with the name of the publisher, so that two publishers do not delete each other's objects."""
PUBLISHER: Final = "switchback.dev/publisher"
"""The annotation with the source of the table, so that two publishers of one instance notice each other."""
DIGEST: Final = "switchback.dev/digest"
"""The annotation with the digest of the content."""
PREFIXES: Final = ("external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/")
"""The default --annotation-prefix of external-dns from 0.22 on, and of those before; each reads its own alone."""


@dataclass(frozen=True, slots=True)
class Record:
    """The addresses of one hostname."""

    hostname: str
    """In normal form, with `*.` in front for a wildcard."""
    ipv4: tuple[str, ...]
    ipv6: tuple[str, ...]


class Kind(Enum):
    """The kind of object that holds a record."""

    DNS_ENDPOINT = "dnsendpoint"
    SERVICE = "service"

    @property
    def other(self) -> Kind:
        """The kind that is not used."""
        return Kind.SERVICE if self is Kind.DNS_ENDPOINT else Kind.DNS_ENDPOINT

    @property
    def plural(self) -> str:
        """The resource name for kubectl."""
        return "services" if self is Kind.SERVICE else "dnsendpoints.externaldns.k8s.io"

    @property
    def shown(self) -> str:
        """The name for people."""
        return "Service" if self is Kind.SERVICE else "DNSEndpoint"

    def path(self, namespace: str) -> str:
        """The path of the collection on the API server."""
        where = quote(namespace, safe="")
        if self is Kind.SERVICE:
            return f"/api/v1/namespaces/{where}/services"
        return f"/apis/externaldns.k8s.io/v1alpha1/namespaces/{where}/dnsendpoints"


@dataclass(frozen=True, slots=True)
class Style:
    """The settings of all manifests of a publisher."""

    kind: Kind
    namespace: str
    instance: str
    ttl: int
    """Seconds."""
    annotation_prefixes: tuple[str, ...] = PREFIXES
    """A Service says everything under each."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Additional labels."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    publisher: str = ""
    """The source of the table, as PUBLISHER has it."""

    @property
    def owner(self) -> dict[str, str]:
        """The labels that mark our objects."""
        return {MANAGED_BY: MANAGER, INSTANCE: self.instance}

    @property
    def selector(self) -> str:
        """The same labels as a label selector."""
        return ",".join(f"{key}={value}" for key, value in self.owner.items())


@dataclass(frozen=True, slots=True)
class Manifest:
    """The desired state of one object."""

    name: str
    record: Record
    body: Mapping[str, Any]


def make_records(names: Iterable[Name]) -> list[Record]:
    """The records of the names, sorted by hostname.

    A wildcard of DNS covers any number of labels (RFC 4592). If a hostname has a wildcard of each reach, that for a
    single label gives the addresses, because clients ask for those names.
    """
    chosen: dict[str, Name] = {}
    for name in names:
        if name.reach is not Reach.ANY_LABELS or name.hostname not in chosen:
            chosen[name.hostname] = name
    return [_record(chosen[hostname]) for hostname in sorted(chosen)]


def make_manifest(record: Record, style: Style) -> Manifest:
    """The manifest of a record."""
    if style.kind is Kind.SERVICE:
        name, said, annotations = label_name(record.hostname), _service(), _annotations(record, style)
    else:
        name, said, annotations = subdomain_name(record.hostname), _dns_endpoint(record, style), {}
    publisher = {PUBLISHER: style.publisher} if style.publisher else {}
    annotations = {**style.annotations, **annotations, **publisher}
    about = {"name": name, "namespace": style.namespace, "labels": {**style.labels, **style.owner}}
    digest = hashlib.sha256(json.dumps([said, about, annotations], sort_keys=True).encode()).hexdigest()[:16]
    metadata = {**about, "annotations": {**annotations, DIGEST: digest}}
    return Manifest(name, record, {**said, "metadata": metadata})


def hostname_of(
    spec: Mapping[str, Any] | None, annotations: Mapping[str, str] | None, *, prefixes: Iterable[str]
) -> str:
    """The hostname of a stored object of either kind, or an empty text."""
    for prefix in prefixes:
        if annotations and (hostname := annotations.get(f"{prefix}hostname")):
            return hostname
    endpoints = (spec or {}).get("endpoints")
    first = endpoints[0] if isinstance(endpoints, list) and endpoints else None
    return str(first.get("dnsName") or "") if isinstance(first, Mapping) else ""


def reserved_annotations(prefixes: Iterable[str]) -> frozenset[str]:
    """The annotations that only the publisher sets."""
    return frozenset({DIGEST, *(f"{prefix}{word}" for prefix in prefixes for word in ("hostname", "target", "ttl"))})


def format_record(record: Record) -> str:
    """One line for people."""
    return f"{record.hostname} {','.join((*record.ipv4, *record.ipv6))}"


def _record(name: Name) -> Record:
    families: dict[int, list[str]] = {4: [], 6: []}
    for address in name.addresses:
        families[ipaddress.ip_address(address).version].append(address)
    return Record(name.hostname, tuple(families[4]), tuple(families[6]))


def _dns_endpoint(record: Record, style: Style) -> dict[str, Any]:
    endpoints = [
        {"dnsName": record.hostname, "recordType": rtype, "recordTTL": style.ttl, "targets": list(targets)}
        for rtype, targets in (("A", record.ipv4), ("AAAA", record.ipv6))
        if targets
    ]
    return {"apiVersion": "externaldns.k8s.io/v1alpha1", "kind": "DNSEndpoint", "spec": {"endpoints": endpoints}}


def _service() -> dict[str, Any]:
    # No ports and no selector: it must not route any traffic.
    return {"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None"}}


def _annotations(record: Record, style: Style) -> dict[str, str]:
    said = {
        "hostname": record.hostname,
        "target": ",".join((*record.ipv4, *record.ipv6)),
        "ttl": str(style.ttl),
    }
    return {f"{prefix}{word}": value for prefix in style.annotation_prefixes for word, value in said.items()}
