"""Structs: the fields of classes and Gateways that say which Service is behind them.

The law: as the API server sends them; null and an absent field are None.
"""

from __future__ import annotations

import msgspec

from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.structs.metadata import LabelledMetadata


class Marked(msgspec.Struct, frozen=True):
    """An IngressClass or a GatewayClass: who it is, and who owns it."""

    metadata: LabelledMetadata


class GatewaySpec(msgspec.Struct, frozen=True, rename="camel"):
    """The class of a Gateway."""

    gateway_class_name: str = ""


class MarkedGateway(msgspec.Struct, frozen=True):
    """A Gateway: who it is, who owns it, and its class."""

    metadata: LabelledMetadata
    spec: GatewaySpec = GatewaySpec()


INGRESS_CLASSES = Collection("IngressClass", "/apis/networking.k8s.io/v1/ingressclasses", Marked)
GATEWAYS = Collection("Gateway", "/apis/gateway.networking.k8s.io/v1/gateways", MarkedGateway, optional=True)
"""Without its CRD there are none. With v1beta1 alone no annotation of a Gateway is read; their statuses are."""
GATEWAY_CLASSES = Collection("GatewayClass", "/apis/gateway.networking.k8s.io/v1/gatewayclasses", Marked, optional=True)
