"""The settings of a replica. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.secondary.source import RpzSource
from dnsproxy.zone.tsig_keys import TsigKey


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """The settings of a replica."""

    primaries: tuple[RpzSource, ...]
    """The first that answers is asked."""
    key: TsigKey | None = None
    """Signs the requests."""
