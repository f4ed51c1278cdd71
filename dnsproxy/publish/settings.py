"""Settings of the publishers: frozen, checked, complete.

The law: the command lines create them once and nothing changes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from dnsproxy.publish.configmaps.manifests import MapName
from dnsproxy.publish.externaldns.manifests import PREFIXES, Kind
from dnsproxy.publish.hosts.rules import Rules
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort


class Mode(Enum):
    """What a publisher is started for."""

    FOLLOW = "follow"
    ONCE = "once"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds."""

    interval: float = 10.0
    """Between two reads of the table."""
    confirm: float = 2.0
    """At most this long until a table that was held back is read again; a server that is starting is ready by then."""


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """The settings that all publishers have."""

    source: HostPort | Path
    mode: Mode = Mode.FOLLOW
    dry_run: bool = False
    zones: tuple[str, ...] = ()
    """Only names at or below one of them are published; empty: all names."""
    pace: Pace = field(default_factory=Pace)
    remove_on_exit: bool = False
    allow_loss: bool = False
    """Whether publishing once may remove most of the published names."""
    admin: Endpoint | None = None
    admin_hosts: tuple[str, ...] = ()
    """The names by which the admin port may be asked."""
    kubeconfig: str | None = None
    context: str | None = None

    @property
    def stays(self) -> bool:
        """Whether it runs until a signal."""
        return self.mode is Mode.FOLLOW and not self.dry_run


@dataclass(frozen=True, slots=True)
class HostsSettings:
    """The settings of `dnsproxy publish-hosts`."""

    common: PublisherSettings
    to: Path | MapName
    rules: Rules
    """For a file."""
    force: bool = False
    """Accept a file of any name."""


@dataclass(frozen=True, slots=True)
class ExternalDnsSettings:
    """The settings of `dnsproxy publish-external-dns`."""

    common: PublisherSettings
    instance: str
    kind: Kind = Kind.DNS_ENDPOINT
    namespace: str | None = None
    """None: the namespace of the credentials."""
    ttl: int = 60
    """Seconds, 1 to 86,400."""
    annotation_prefixes: tuple[str, ...] = PREFIXES
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    allow_empty: bool = False
    """Delete all objects when the table is empty."""
    take_over: bool = False
    """Change and delete objects of other publishers with the same instance."""
