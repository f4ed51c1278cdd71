"""Manifests: a record as a DNSEndpoint, or as a headless Service with annotations.

The law: a manifest says whose it is, and has a digest of all that it says, so that what it says no more is noticed too.
The pure side of what external-dns reads:
https://kubernetes-sigs.github.io/external-dns/latest/docs/sources/crd/ and .../sources/service/.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from urllib.parse import quote

from dnsproxy.publish.configmaps.manifests import MANAGED_BY, MANAGER
from dnsproxy.publish.externaldns.object_names import label_name, subdomain_name
from dnsproxy.publish.externaldns.records import Record

INSTANCE: Final = "switchback.dev/instance"
"""The label with the name of the publisher, so that two of them do not delete each other's objects."""
DIGEST: Final = "switchback.dev/digest"
"""The annotation with the digest."""
PREFIX: Final = "external-dns.alpha.kubernetes.io/"


class Kind(Enum):
    """Which objects hold the records."""

    DNS_ENDPOINT = "dnsendpoint"
    SERVICE = "service"

    @property
    def other(self) -> Kind:
        """The one that is not used."""
        return Kind.SERVICE if self is Kind.DNS_ENDPOINT else Kind.DNS_ENDPOINT

    @property
    def plural(self) -> str:
        """As kubectl has it."""
        return "services" if self is Kind.SERVICE else "dnsendpoints.externaldns.k8s.io"

    @property
    def shown(self) -> str:
        """As people say it."""
        return "Service" if self is Kind.SERVICE else "DNSEndpoint"

    def path(self, namespace: str) -> str:
        """The collection, as the API server knows it."""
        where = quote(namespace, safe="")
        if self is Kind.SERVICE:
            return f"/api/v1/namespaces/{where}/services"
        return f"/apis/externaldns.k8s.io/v1alpha1/namespaces/{where}/dnsendpoints"


@dataclass(frozen=True, slots=True)
class Style:
    """How manifests are made."""

    kind: Kind
    namespace: str
    instance: str
    ttl: int
    """Seconds."""
    annotation_prefix: str = PREFIX
    labels: Mapping[str, str] = field(default_factory=dict)
    """More of them, as somebody wants."""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def owner(self) -> dict[str, str]:
        """The labels by which our objects are known."""
        return {MANAGED_BY: MANAGER, INSTANCE: self.instance}

    @property
    def selector(self) -> str:
        """The same as a label selector."""
        return ",".join(f"{key}={value}" for key, value in self.owner.items())


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object as it is to be."""

    name: str
    record: Record
    body: Mapping[str, Any]


def make_manifest(record: Record, style: Style) -> Manifest:
    """The object of a record."""
    if style.kind is Kind.SERVICE:
        name, said, annotations = label_name(record.hostname), _service(), _annotations(record, style)
    else:
        name, said, annotations = subdomain_name(record.hostname), _dns_endpoint(record, style), {}
    annotations = {**style.annotations, **annotations}
    about = {"name": name, "namespace": style.namespace, "labels": {**style.labels, **style.owner}}
    digest = hashlib.sha256(json.dumps([said, about, annotations], sort_keys=True).encode()).hexdigest()[:16]
    metadata = {**about, "annotations": {**annotations, DIGEST: digest}}
    return Manifest(name, record, {**said, "metadata": metadata})


def reserved_annotations(prefix: str) -> frozenset[str]:
    """Annotations that are ours to set."""
    return frozenset({DIGEST, *(f"{prefix}{word}" for word in ("hostname", "target", "ttl"))})


def format_record(record: Record) -> str:
    """One line for people."""
    return f"{record.hostname} {','.join((*record.ipv4, *record.ipv6))}"


def _dns_endpoint(record: Record, style: Style) -> dict[str, Any]:
    endpoints = [
        {"dnsName": record.hostname, "recordType": rtype, "recordTTL": style.ttl, "targets": list(targets)}
        for rtype, targets in (("A", record.ipv4), ("AAAA", record.ipv6))
        if targets
    ]
    return {"apiVersion": "externaldns.k8s.io/v1alpha1", "kind": "DNSEndpoint", "spec": {"endpoints": endpoints}}


def _service() -> dict[str, Any]:
    # No ports and no selector: nothing in the cluster is to listen for it.
    return {"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None"}}


def _annotations(record: Record, style: Style) -> dict[str, str]:
    said = {
        "hostname": record.hostname,
        "target": ",".join((*record.ipv4, *record.ipv6)),
        "ttl": str(style.ttl),
    }
    return {f"{style.annotation_prefix}{word}": value for word, value in said.items()}
