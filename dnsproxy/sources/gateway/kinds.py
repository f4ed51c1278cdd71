"""Kinds: the kinds of objects in the Gateway API, and which routes each protocol accepts.

The law: a kind's name identifies the kind (no two groups here share one), so that it serves as a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

GROUP: Final = "gateway.networking.k8s.io"
X_GROUP: Final = "gateway.networking.x-k8s.io"
"""The group of experimental kinds, which may still change."""

GATEWAY: Final = "Gateway"
LISTENER_SET: Final = "ListenerSet"
X_LISTENER_SET: Final = "XListenerSet"
HTTP_ROUTE: Final = "HTTPRoute"
GRPC_ROUTE: Final = "GRPCRoute"
TLS_ROUTE: Final = "TLSRoute"

LISTENER_SETS: Final = (LISTENER_SET, X_LISTENER_SET)
ROUTES: Final = (HTTP_ROUTE, GRPC_ROUTE, TLS_ROUTE)
"""The routes with hostnames: TCPRoute and UDPRoute have none."""
SOURCES: Final = (GATEWAY, *LISTENER_SETS, *ROUTES)
"""Each kind is a source of its own in the claim store."""

GROUPS: Final[Mapping[str, str]] = MappingProxyType(dict.fromkeys(SOURCES, GROUP) | {X_LISTENER_SET: X_GROUP})

_WEB: Final = frozenset({HTTP_ROUTE, GRPC_ROUTE})

ROUTES_OF_PROTOCOL: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"HTTP": _WEB, "HTTPS": _WEB, "TLS": frozenset({TLS_ROUTE}), "TCP": frozenset(), "UDP": frozenset()}
)
"""The protocols without a prefix; an implementation may have others, such as `example.org/quic`."""


class Ref(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """One object of the cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
