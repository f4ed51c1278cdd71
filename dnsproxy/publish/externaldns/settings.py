"""The settings of `dnsproxy publish-external-dns`: frozen, checked, complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dnsproxy.publish.externaldns.manifests import PREFIX, Kind
from dnsproxy.publish.settings import PublisherSettings


@dataclass(frozen=True, slots=True)
class ExternalDnsSettings:
    """All that it is told."""

    common: PublisherSettings
    instance: str
    kind: Kind = Kind.DNS_ENDPOINT
    namespace: str | None = None
    """None: the one that the credentials are for."""
    ttl: int = 60
    """Seconds."""
    annotation_prefix: str = PREFIX
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    allow_empty: bool = False
