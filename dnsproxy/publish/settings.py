"""Settings of the publishers: frozen, checked, complete. The command lines make them, nothing changes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from dnsproxy.publish.configmaps.manifests import MapName
from dnsproxy.publish.following import Pace
from sidecar.endpoints import Endpoint
from sidecar.host_port import HostPort


class Doing(Enum):
    """What a publisher is started for."""

    FOLLOW = "follow"
    ONCE = "once"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """What all publishers are told."""

    source: HostPort | Path
    doing: Doing = Doing.FOLLOW
    dry_run: bool = False
    zones: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)
    remove_on_exit: bool = False
    admin: Endpoint | None = None
    kubeconfig: str | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class HostsSettings:
    """All that `dnsproxy publish-hosts` is told."""

    common: PublisherSettings
    to: Path | MapName
    force: bool = False
    """Take a file of any name."""
