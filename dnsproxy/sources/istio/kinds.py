"""Kinds: the kinds of Istio's objects that name hosts, for watched_kinds.py.

The law: the most stable version that is served; the fields that are read here are the same in all versions. Istio's
Gateway has a name of its own here, because the Gateway API has a Gateway too.
https://istio.io/latest/docs/reference/config/networking/
"""

from __future__ import annotations

from typing import Final

from dnsproxy.sources.istio import structs
from dnsproxy.sources.watched_kinds import WatchedKind

GROUP: Final = "networking.istio.io"
ISTIO_GATEWAY: Final = "IstioGateway"
VIRTUAL_SERVICE: Final = "VirtualService"

_VERSIONS: Final = ("v1", "v1beta1", "v1alpha3")

WATCHED: Final = (
    WatchedKind(ISTIO_GATEWAY, GROUP, _VERSIONS, "gateways", structs.Gateway),
    WatchedKind(VIRTUAL_SERVICE, GROUP, _VERSIONS, "virtualservices", structs.VirtualService),
)
