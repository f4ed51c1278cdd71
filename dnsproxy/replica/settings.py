"""The settings of a replica. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dnsproxy.secondary.source import RpzSource
from dnsproxy.zone.tsig_keys import TsigKey

SOURCE: Final = "rpz"
"""What the sources of a table call it."""


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """The settings of a replica."""

    primaries: tuple[RpzSource, ...]
    """The first that answers is asked."""
    key: TsigKey | None = None
    """Signs the requests."""
