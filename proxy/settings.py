"""What a relay is told: one frozen value, made once at the edge and handed down.

The law: no default here contradicts the help text of the flags; nothing else holds a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from proxy.routes import Route


class ProxyProtocol(StrEnum):
    """Which header goes in front of a connection."""

    V1 = "v1"
    V2 = "v2"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    routes: tuple[Route, ...]
    proxy_protocol: ProxyProtocol = ProxyProtocol.V1
    connect_timeout: float = 5.0
    """From the client's connection to the backend's, all addresses together."""
    idle_timeout: float = 600.0
    """Without an octet in either direction."""
    half_close_timeout: float = 120.0
    """Without an octet in the direction that is left, once one side has finished sending."""
    advertise: Mapping[int, int] = field(default_factory=dict)
    """Destination port to state in the header, by listening port."""
